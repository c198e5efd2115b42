import { createHash, type KeyObject, webcrypto } from 'node:crypto';
import { DOMParser, type Element, XMLSerializer } from '@xmldom/xmldom';
import { Application, SignedXml, setNodeDependencies } from 'xadesjs';
import { badSignature } from '../values/fault.ts';
import type { SignatureForm } from './signature.ts';

/** Gives the library its parser and its cryptography, which it keeps for the whole thread. */
export function prepareLibrary(): void {
  setNodeDependencies({ DOMParser, XMLSerializer });
  Application.setEngine('node', webcrypto);
}

/** The library with one key, whatever KeyInfo has. It keeps the text that each reference was digested from. */
class PinnedSignature extends SignedXml {
  readonly digested = new Map<string, string>();
  readonly #key: webcrypto.CryptoKey;
  #reference = '';

  constructor(document: NonNullable<ConstructorParameters<typeof SignedXml>[0]>, key: webcrypto.CryptoKey) {
    super(document);
    this.#key = key;
  }

  protected override GetPublicKeys(): Promise<webcrypto.CryptoKey[]> {
    return Promise.resolve([this.#key]);
  }

  protected override DigestReference(...given: Parameters<SignedXml['DigestReference']>) {
    this.#reference = given[1].Uri ?? '';
    return super.DigestReference(...given);
  }

  protected override ApplyTransforms(...given: Parameters<SignedXml['ApplyTransforms']>) {
    const output: unknown = super.ApplyTransforms(...given);
    if (typeof output === 'string') this.digested.set(this.#reference, output);
    return output;
  }
}

/**
 * Verifies the signature of a list with one key.
 *
 * @returns the canonical text that was digested: what is read from it is signed, whatever else the document holds
 * @throws ListFault signature
 */
export async function verifySignature(root: Element, form: SignatureForm, key: KeyObject): Promise<string> {
  if (key.asymmetricKeyType !== form.algorithm.keyType) {
    throw badSignature('the algorithm of the signature does not fit the key of the signer');
  }
  const signature = new PinnedSignature(root.ownerDocument, await importKey(key, form));
  const isValid = await isVerified(signature, form.element);
  const { uri, hash, value } = form.listDigest;
  const text = signature.digested.get(uri);
  // The library has compared the digest too; this one is of the very text that is read.
  const isDigested = text !== undefined && createHash(hash).update(text, 'utf8').digest('base64') === value;
  if (!isValid || !isDigested) throw badSignature('the signature does not fit the list');
  return text;
}

async function isVerified(signature: PinnedSignature, element: Element): Promise<boolean> {
  try {
    signature.LoadXml(element);
    return await signature.Verify();
  } catch {
    // It throws where a digest differs, and on anything unexpected in a signature.
    return false;
  }
}

const curves = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' } as const;

function importKey(
  key: KeyObject,
  { algorithm: { name, hash } }: SignatureForm,
): Promise<webcrypto.CryptoKey> {
  const curve = Object.entries(curves).find(([named]) => named === key.asymmetricKeyDetails?.namedCurve);
  const algorithm = name === 'ECDSA' ? { name, namedCurve: curve?.[1] ?? '' } : { name, hash };
  return webcrypto.subtle.importKey('spki', key.export({ type: 'spki', format: 'der' }), algorithm, true, [
    'verify',
  ]);
}
