import { createDecipheriv, createPrivateKey, type KeyObject, pbkdf2Sync } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import {
  DER,
  type DerNode,
  derBytes,
  derContent,
  derCount,
  derInner,
  derOid,
  derSequence,
  expectDer,
  readDer,
} from '#core/encoding/der.ts';
import { AppError } from '#core/errors/errors.ts';

/** What a PFX file holds that a verifier needs. */
interface PfxContent {
  readonly key: KeyObject;
  /** DER, in the order of the file. */
  readonly certificates: readonly Buffer[];
}

/** Object identifiers of PKCS #7, #9 and #12 (RFC 7292), and of PKCS #5 (RFC 8018). */
const OID = {
  data: '1.2.840.113549.1.7.1',
  encryptedData: '1.2.840.113549.1.7.6',
  keyBag: '1.2.840.113549.1.12.10.1.1',
  shroudedKeyBag: '1.2.840.113549.1.12.10.1.2',
  certificateBag: '1.2.840.113549.1.12.10.1.3',
  x509: '1.2.840.113549.1.9.22.1',
  pbes2: '1.2.840.113549.1.5.13',
  pbkdf2: '1.2.840.113549.1.5.12',
} as const;

const PRF: Readonly<Record<string, string>> = {
  '1.2.840.113549.2.7': 'sha1',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
};

const CIPHER: Readonly<Record<string, { readonly name: string; readonly keyBytes: number }>> = {
  '2.16.840.1.101.3.4.1.2': { name: 'aes-128-cbc', keyBytes: 16 },
  '2.16.840.1.101.3.4.1.22': { name: 'aes-192-cbc', keyBytes: 24 },
  '2.16.840.1.101.3.4.1.42': { name: 'aes-256-cbc', keyBytes: 32 },
};

const TAG_CONTENT = 0xa0;
const TAG_ENCRYPTED = 0x80;

function refuse(message: string, cause?: unknown): never {
  throw new AppError('invalid', 'PFX_UNREADABLE', message, { cause });
}

const octetsOf = (node: DerNode | undefined): Uint8Array => derContent(expectDer(node, DER.octetString));
const wrapped = (node: DerNode | undefined): DerNode => derInner(expectDer(node, TAG_CONTENT));

/** Decrypts by PBES2 with PBKDF2 and AES-CBC (RFC 8018 section 6.2), what programs of today write. */
function decrypt(algorithm: DerNode | undefined, encrypted: Uint8Array, password: string): Buffer {
  const [scheme, parameters] = derSequence(algorithm);
  if (derOid(scheme) !== OID.pbes2)
    refuse('its certificates are encrypted in an outdated way; write it again with AES and PBKDF2');
  const [derivation, encryption] = derSequence(parameters).map(derSequence);
  const [salt, iterations, ...options] = derSequence(derivation?.[1]);
  const prf = options.find(({ tag }) => tag === DER.sequence);
  const hash = prf === undefined ? 'sha1' : PRF[derOid(derSequence(prf)[0])];
  const cipher = CIPHER[derOid(encryption?.[0])];
  if (derOid(derivation?.[0]) !== OID.pbkdf2 || hash === undefined || cipher === undefined)
    refuse('its certificates are encrypted with an algorithm that is not supported');
  const key = pbkdf2Sync(password, octetsOf(salt), derCount(iterations), cipher.keyBytes, hash);
  const decipher = createDecipheriv(cipher.name, key, octetsOf(encryption?.[1]));
  return Buffer.concat([decipher.update(encrypted), decipher.final()]);
}

/** The bags of one ContentInfo, decrypted. */
function bagsOf(info: DerNode, password: string): readonly DerNode[] {
  const [type, content] = derSequence(info);
  const kind = derOid(type);
  if (kind === OID.data) return derSequence(readDer(octetsOf(wrapped(content))));
  if (kind !== OID.encryptedData) refuse('it is protected by a public key, which is not supported');
  const [, encrypted] = derSequence(wrapped(content));
  const [, algorithm, octets] = derSequence(encrypted);
  const plain = decrypt(algorithm, derContent(expectDer(octets, TAG_ENCRYPTED)), password);
  return derSequence(readDer(plain));
}

function certificatesOf(bag: DerNode): readonly Buffer[] {
  const [type, value] = derSequence(bag);
  if (derOid(type) !== OID.certificateBag) return [];
  const [kind, certificate] = derSequence(wrapped(value));
  return derOid(kind) === OID.x509 ? [Buffer.from(octetsOf(wrapped(certificate)))] : [];
}

function keysOf(bag: DerNode, password: string): readonly KeyObject[] {
  const [type, value] = derSequence(bag);
  const kind = derOid(type);
  if (kind !== OID.keyBag && kind !== OID.shroudedKeyBag) return [];
  const key = Buffer.from(derBytes(wrapped(value)));
  const passphrase = kind === OID.shroudedKeyBag ? { passphrase: password } : {};
  return [createPrivateKey({ key, format: 'der', type: 'pkcs8', ...passphrase })];
}

function read(bytes: Buffer, password: string): PfxContent {
  const [, safe] = derSequence(readDer(bytes));
  const [type, content] = derSequence(safe);
  if (derOid(type) !== OID.data) refuse('it is signed by a public key, which is not supported');
  const infos = derSequence(readDer(octetsOf(wrapped(content))));
  const bags = infos.flatMap((info) => bagsOf(info, password));
  const [key, ...others] = bags.flatMap((bag) => keysOf(bag, password));
  if (key === undefined || others.length > 0) refuse('it holds no key, or several');
  // OpenSSL verifies the MAC of the whole (RFC 7292 section 5.1), which plain bags depend on.
  createSecureContext({ pfx: bytes, passphrase: password });
  return { key, certificates: bags.flatMap(certificatesOf) };
}

/**
 * Reads a PFX file (PKCS #12, RFC 7292) in DER that is protected by a password: one key, and certificates that are plain or
 * encrypted with AES-CBC.
 * @param password empty for a file without one
 * @throws AppError invalid PFX_UNREADABLE; its message continues "the PFX file cannot be read: "
 */
export function readPfx(bytes: Buffer, password: string): PfxContent {
  try {
    return read(bytes, password);
  } catch (error) {
    if (error instanceof AppError && error.code === 'PFX_UNREADABLE') throw error;
    return refuse('it is damaged, or has another password', error);
  }
}
