import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { splitPem } from '#core/encoding/pem.ts';
import { isAppError } from '#core/errors/errors.ts';
import { ConfigError } from '#kit/config/config.ts';
import { readPfx } from './pkcs12.ts';

/** The key of a verifier and its certificates. */
interface Bundle {
  readonly key: KeyObject;
  /** Leaf first. */
  readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
}

/** First byte of a PFX file, which is a SEQUENCE in DER. */
const SEQUENCE = 0x30;

/** A fault of the setting that names the bundle. */
export function fault(message: string, cause?: unknown): ConfigError {
  const error = new ConfigError([{ name: 'Haip__VerifierCertificate', message }]);
  if (cause !== undefined) error.cause = cause;
  return error;
}

/**
 * Reads a key with its certificates: a PFX file, or PEM with the leaf first.
 * @param password of the PFX file, or of the key in PEM
 * @throws ConfigError naming Haip__VerifierCertificate
 */
export function readBundle(bytes: Buffer, password: string | undefined): Bundle {
  return bytes[0] === SEQUENCE ? readPfxBundle(bytes, password) : readPemBundle(bytes.toString(), password);
}

function readPfxBundle(bytes: Buffer, password = ''): Bundle {
  try {
    const { key, certificates } = readPfx(bytes, password);
    const all = certificates.map((der) => new X509Certificate(der));
    const leaf = all.find((one) => one.checkPrivateKey(key));
    if (leaf === undefined) throw fault('the PFX file has no certificate of its key');
    return { key, certificates: [leaf, ...issuersOf(leaf, all)] };
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    throw fault(`the PFX file cannot be read: ${error.message}`, error);
  }
}

/** The certificates above a leaf, each followed by its issuer: a PFX file has them in any order. */
function issuersOf(leaf: X509Certificate, all: readonly X509Certificate[]): readonly X509Certificate[] {
  const left = all.filter((one) => !one.raw.equals(leaf.raw));
  const issuers: X509Certificate[] = [];
  for (let last = leaf; ; ) {
    const at = left.findIndex((one) => last.checkIssued(one) && last.verify(one.publicKey));
    const [issuer] = at < 0 ? [] : left.splice(at, 1);
    if (issuer === undefined) return issuers;
    issuers.push(issuer);
    last = issuer;
  }
}

function readPemBundle(pem: string, password: string | undefined): Bundle {
  const { certificates, rest } = splitBundle(pem);
  const [leaf, ...others] = certificates;
  if (leaf === undefined) throw fault('the bundle has no certificate');
  const key = readKey(rest, password);
  if (!leaf.checkPrivateKey(key)) throw fault('the first certificate is not that of the key');
  return { key, certificates: [leaf, ...others] };
}

function splitBundle(pem: string): {
  readonly certificates: readonly X509Certificate[];
  readonly rest: string;
} {
  const parts = splitPem(pem);
  try {
    if (parts !== undefined)
      return { certificates: parts.certificates.map((der) => new X509Certificate(der)), rest: parts.rest };
  } catch {
    // Refused below, like a block that is no base64.
  }
  throw fault('a certificate of the bundle cannot be read');
}

function readKey(pem: string, password: string | undefined): KeyObject {
  try {
    return createPrivateKey({ key: pem, ...(password !== undefined && { passphrase: password }) });
  } catch {
    throw fault('the bundle has no private key that can be read');
  }
}
