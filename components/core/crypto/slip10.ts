import { createECDH } from 'node:crypto';
import { concatBytes } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';
import { hmacSha512 } from './hash.ts';

/** The curves of SLIP-0010 that wallets derive on. */
type Slip10Curve = 'ed25519' | 'nist256p1';

interface Slip10Node {
  /** Seed for Ed25519, scalar for P-256; 32 bytes. */
  readonly privateKey: Uint8Array;
  readonly chainCode: Uint8Array;
}

const HARDENED = 0x8000_0000;
const MASTER_KEYS: Readonly<Record<Slip10Curve, string>> = {
  ed25519: 'ed25519 seed',
  nist256p1: 'Nist256p1 seed',
};
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function toScalar(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

function fromScalar(scalar: bigint): Uint8Array {
  return Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/**
 * The master node of a seed (SLIP-0010, master key generation).
 * @param seed 16 to 64 bytes
 */
export function masterNode(curve: Slip10Curve, seed: Uint8Array): Slip10Node {
  let block = hmacSha512(MASTER_KEYS[curve], seed);
  if (curve === 'nist256p1') {
    while (toScalar(block.subarray(0, 32)) === 0n || toScalar(block.subarray(0, 32)) >= P256_ORDER) {
      block = hmacSha512(MASTER_KEYS[curve], block);
    }
  }
  return { privateKey: block.subarray(0, 32), chainCode: block.subarray(32) };
}

function compressedPoint(scalar: Uint8Array): Uint8Array {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(scalar);
  return ecdh.getPublicKey(null, 'compressed');
}

function childOfP256(parent: Slip10Node, index: number): Slip10Node {
  const hardened = index >= HARDENED;
  const head = hardened
    ? concatBytes([Uint8Array.of(0), parent.privateKey])
    : compressedPoint(parent.privateKey);
  let block = hmacSha512(parent.chainCode, concatBytes([head, uint32(index)]));
  for (;;) {
    const left = toScalar(block.subarray(0, 32));
    const scalar = (left + toScalar(parent.privateKey)) % P256_ORDER;
    const chainCode = block.subarray(32);
    if (left < P256_ORDER && scalar !== 0n) return { privateKey: fromScalar(scalar), chainCode };
    block = hmacSha512(parent.chainCode, concatBytes([Uint8Array.of(1), chainCode, uint32(index)]));
  }
}

function childOf(curve: Slip10Curve, parent: Slip10Node, index: number): Slip10Node {
  if (curve === 'nist256p1') return childOfP256(parent, index);
  if (index < HARDENED) {
    throw new AppError('invalid', 'INVALID_DERIVATION_PATH', 'Ed25519 derives hardened children only');
  }
  const data = concatBytes([Uint8Array.of(0), parent.privateKey, uint32(index)]);
  const block = hmacSha512(parent.chainCode, data);
  return { privateKey: block.subarray(0, 32), chainCode: block.subarray(32) };
}

/**
 * Child indexes of a path such as `m/44'/0'/0'/0'/100'`; hardened ones have 2^31 added.
 * @throws AppError invalid INVALID_DERIVATION_PATH
 */
export function parsePath(path: string): readonly number[] {
  const refuse = (): never => {
    throw new AppError('invalid', 'INVALID_DERIVATION_PATH', "Path is not of the form m/44'/0'");
  };
  const [root, ...steps] = path.split('/');
  if (root !== 'm' || steps.length > 16) refuse();
  return steps.map((step) => {
    const match = /^(0|[1-9][0-9]{0,9})('?)$/.exec(step);
    const index = match === null ? Number.NaN : Number(match[1]);
    if (match === null || !(index < HARDENED)) return refuse();
    return match[2] === "'" ? index + HARDENED : index;
  });
}

/**
 * The node at a path below the master of a seed (SLIP-0010).
 * @throws AppError invalid INVALID_DERIVATION_PATH, also for a child of Ed25519 that is not hardened
 */
export function deriveNode(curve: Slip10Curve, seed: Uint8Array, path: string): Slip10Node {
  return deriveBelow(curve, masterNode(curve, seed), path);
}

/**
 * The node at a path below another node, which the `m` of the path stands for.
 * @throws AppError invalid INVALID_DERIVATION_PATH, also for a child of Ed25519 that is not hardened
 */
export function deriveBelow(curve: Slip10Curve, node: Slip10Node, path: string): Slip10Node {
  return parsePath(path).reduce((parent, index) => childOf(curve, parent, index), node);
}
