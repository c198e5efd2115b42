/** L - 1 in little endian is the largest canonical S (RFC 8032 section 5.1.7); only the low 16 bytes of L vary. */
const GROUP_ORDER = 'edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010';

/** The y coordinates of the eight points of small order, little endian: orders 4, 1, 2, 8 and 8. */
const SMALL_ORDER_Y: readonly string[] = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
];

function isSmallOrder(point: Uint8Array): boolean {
  const low = point[0];
  const suspicious = low === 0x00 || low === 0x01 || low === 0xec || low === 0x26 || low === 0xc7;
  if (!suspicious) return false;
  const y = Buffer.from(point);
  y[31] = (y[31] ?? 0) & 0x7f;
  return SMALL_ORDER_Y.includes(y.toString('hex'));
}

function isCanonicalPoint(point: Uint8Array): boolean {
  if (((point[31] ?? 0) & 0x7f) !== 0x7f) return true;
  for (let index = 30; index > 0; index -= 1) {
    if (point[index] !== 0xff) return true;
  }
  return (point[0] ?? 0) < 0xed;
}

function isCanonicalScalar(scalar: Uint8Array): boolean {
  const top = scalar[31] ?? 0xff;
  if (top !== 0x10) return top < 0x10;
  const order = Buffer.from(GROUP_ORDER, 'hex');
  for (let index = 30; index >= 0; index -= 1) {
    const [have, limit] = [scalar[index] ?? 0, order[index] ?? 0];
    if (have !== limit) return have < limit;
  }
  return false;
}

/**
 * Checks that come before every backend: sizes, S below the group order, and A and R encoded canonically and not of
 * small order. What remains is the cofactorless equation, on which all backends agree.
 * @param publicKey A, 32 bytes
 * @param signature R followed by S, 64 bytes
 */
export function isStrictEd25519(publicKey: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const point = signature.subarray(0, 32);
  return (
    isCanonicalScalar(signature.subarray(32)) &&
    isCanonicalPoint(publicKey) &&
    isCanonicalPoint(point) &&
    !isSmallOrder(publicKey) &&
    !isSmallOrder(point)
  );
}
