import { findJwkKey, type SignatureKey } from '../../crypto/signature-key.ts';
import { encodeBase64Url } from '../../encoding/base64.ts';
import { type CborNode, findCborMember, readCbor } from '../../encoding/cbor.ts';
import { writeCbor } from '../../encoding/cbor-writer.ts';
import { isAppError } from '../../errors/errors.ts';
import { refusePresentation } from '../presentation.ts';

/** Labels of COSE header parameters (RFC 9052 section 3.1, RFC 9360 section 2). */
export const COSE_HEADER = { algorithm: 1, critical: 2, x5chain: 33 } as const;

/** COSE algorithms of ECDSA with SHA-256 over P-256: ES256 (RFC 9053 section 2.1) and ESP256 (RFC 9864). */
export const ES256 = -7;
const ESP256 = -9;

/** Labels and values of a COSE_Key on P-256 (RFC 9053 section 7.1). */
export const COSE_KEY = { type: 1, curve: -1, x: -2, y: -3 } as const;
export const COSE_EC2 = 2;
export const COSE_P256 = 1;

/** A COSE_Sign1 (RFC 9052 section 4.2) of ES256; nothing is verified. */
export interface CoseSign1 {
  /** The protected header as it was received. */
  readonly protectedHeader: Uint8Array;
  /** Certificates in DER, the leaf first; empty without the header. */
  readonly x5chain: readonly Uint8Array[];
  /** Undefined when it is detached. */
  readonly payload: Uint8Array | undefined;
  readonly signature: Uint8Array;
}

function refuse(message: string): never {
  return refusePresentation('FORMAT', message);
}

/** Reads CBOR of a presentation. */
export function parsePresentedCbor(bytes: Uint8Array): CborNode {
  try {
    return readCbor(bytes);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    return refuse(error.message);
  }
}

/** The bytes of a byte string. */
export function bytesOf(node: CborNode | undefined, what: string): Uint8Array {
  return node?.kind === 'bytes' ? node.value : refuse(`${what} is no byte string`);
}

function headersOf(protectedHeader: Uint8Array): CborNode | undefined {
  // RFC 9052 section 3: an empty map may be written as no bytes.
  return protectedHeader.length === 0 ? undefined : parsePresentedCbor(protectedHeader);
}

function certificatesOf(header: CborNode | undefined): readonly Uint8Array[] {
  if (header === undefined) return [];
  if (header.kind !== 'array') return [bytesOf(header, 'The certificate')];
  if (header.items.length === 0) refuse('The certificate chain is empty');
  return header.items.map((item) => bytesOf(item, 'A certificate'));
}

/**
 * Reads a COSE_Sign1 without a tag, as ISO 18013-5 writes it.
 * @throws AppError unprocessable FORMAT, also for critical headers and labels in both headers; SIGNATURE for another
 * algorithm than ES256
 */
export function parseCoseSign1(node: CborNode | undefined, what: string): CoseSign1 {
  if (node?.kind !== 'array' || node.items.length !== 4) refuse(`${what} is no COSE_Sign1`);
  const [protectedItem, unprotectedHeaders, payloadItem, signatureItem] = node.items;
  const protectedHeader = bytesOf(protectedItem, 'The protected header');
  const headers = headersOf(protectedHeader);
  if (unprotectedHeaders?.kind !== 'map') refuse('The unprotected header is no map');
  const find = (label: number): CborNode | undefined => {
    const found = headers === undefined ? undefined : findCborMember(headers, label);
    const open = findCborMember(unprotectedHeaders, label);
    if (found !== undefined && open !== undefined) refuse('A header occurs twice');
    return found ?? open;
  };
  if (find(COSE_HEADER.critical) !== undefined) refuse('A critical header is not known');
  // The algorithm counts only where the signature covers it.
  const algorithm = headers === undefined ? undefined : findCborMember(headers, COSE_HEADER.algorithm);
  find(COSE_HEADER.algorithm);
  const isKnown = algorithm?.kind === 'integer' && [ES256, ESP256].includes(Number(algorithm.value));
  if (!isKnown) refusePresentation('SIGNATURE', `The algorithm of ${what} is not accepted`);
  const isDetached = payloadItem?.kind === 'simple' && payloadItem.value === null;
  return {
    protectedHeader,
    x5chain: certificatesOf(find(COSE_HEADER.x5chain)),
    payload: isDetached ? undefined : bytesOf(payloadItem, 'The payload'),
    signature: bytesOf(signatureItem, 'The signature'),
  };
}

/** What a COSE_Sign1 signs: the Sig_structure without external data (RFC 9052 section 4.4). */
export function signedBytes(protectedHeader: Uint8Array, payload: Uint8Array): Uint8Array {
  return writeCbor(['Signature1', protectedHeader, new Uint8Array(0), payload]);
}

/** The public JWK of a COSE_Key on P-256 with both coordinates; undefined for every other key. */
export function findCoseJwk(node: CborNode | undefined): { readonly [member: string]: string } | undefined {
  if (node === undefined) return undefined;
  const [type, curve] = [COSE_KEY.type, COSE_KEY.curve].map((label) => findCborMember(node, label));
  const [x, y] = [COSE_KEY.x, COSE_KEY.y].map((label) => findCborMember(node, label));
  if (type?.kind !== 'integer' || type.value !== BigInt(COSE_EC2)) return undefined;
  if (curve?.kind !== 'integer' || curve.value !== BigInt(COSE_P256)) return undefined;
  if (x?.kind !== 'bytes' || y?.kind !== 'bytes') return undefined;
  return { kty: 'EC', crv: 'P-256', x: encodeBase64Url(x.value), y: encodeBase64Url(y.value) };
}

/** The key of a JWK, when it is on P-256. */
export function findP256Key(jwk: unknown): SignatureKey | undefined {
  const key = findJwkKey(jwk);
  return key?.kind === 'P-256' ? key : undefined;
}
