import { sha2, sha256 } from '../../crypto/hash.ts';
import { type SignatureKey, verifyJose } from '../../crypto/signature-key.ts';
import { embeddedCbor, writeCbor } from '../../encoding/cbor-writer.ts';
import type { JsonObject } from '../../encoding/json.ts';
import { equalBytes } from '../../encoding/text.ts';
import { type Judgement, judge } from '../../errors/judgement.ts';
import { CLOCK_LEEWAY_SECONDS, refusePresentation } from '../presentation.ts';
import type { StatusReference } from '../status-list/reference.ts';
import { claimOf } from './claims.ts';
import { type CoseSign1, findCoseJwk, findP256Key, signedBytes } from './cose.ts';
import type { DeviceSigned, PresentedMdoc } from './parse.ts';

/**
 * The purpose that the certificate of a document signer names (ISO 18013-5 annex B.1.4, where the extension is mandatory);
 * required of the leaf of `x5chain`.
 */
export const DOCUMENT_SIGNER = { purpose: '1.0.18013.5.1.2', whenAbsent: 'refuse' } as const;

/** What a request over OpenID4VP binds the device's signature to. */
export interface OpenId4VpSession {
  /** The verifier's full client id, prefix included. */
  readonly clientId: string;
  readonly nonce: string;
  readonly responseUri: string;
  /** SHA-256 thumbprint of the verifier's encryption key, 32 bytes; undefined when the response was not encrypted. */
  readonly encryptionKeyThumbprint: Uint8Array | undefined;
}

/** What a verifier expects of an mdoc. */
export interface MdocExpectation {
  /**
   * Key and validity of the leaf certificate of `x5chain`, once its path was judged. The header itself never decides it.
   */
  readonly issuer: { readonly key: SignatureKey; readonly notBeforeMs: number; readonly notAfterMs: number };
  /** Undefined accepts every type. */
  readonly docType: string | undefined;
  /** Undefined for a credential that is stored or imported, not presented. */
  readonly session: OpenId4VpSession | undefined;
  /** Time of verification, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** A verified mdoc. */
export interface VerifiedMdoc {
  readonly docType: string;
  /** Elements that the issuer signed, by namespace. What the device alone signed is no claim. */
  readonly claims: JsonObject;
  /** The device's public JWK; proven when a session was expected. */
  readonly deviceKey: JsonObject;
  readonly status: StatusReference | 'unsupported' | undefined;
  readonly validUntilMs: number;
}

/** SessionTranscript of OpenID4VP (OpenID4VP 1.0 appendix B.2.6.1), in CBOR. */
export function openId4VpTranscript(session: OpenId4VpSession): Uint8Array {
  const { clientId, nonce, responseUri, encryptionKeyThumbprint } = session;
  const info = writeCbor([clientId, nonce, encryptionKeyThumbprint ?? null, responseUri]);
  return writeCbor([null, null, ['OpenID4VPHandover', sha256(info)]]);
}

function verifySign1(
  { protectedHeader, signature }: CoseSign1,
  payload: Uint8Array,
  key: SignatureKey,
): boolean {
  return verifyJose('ES256', key, signedBytes(protectedHeader, payload), signature);
}

function judgeDocType({ docType, mso }: PresentedMdoc, expected: string | undefined): void {
  if (docType !== mso.docType)
    refusePresentation('VCT_MISMATCH', 'The document has another type than was signed', 'docType');
  if (expected !== undefined && docType !== expected) {
    refusePresentation('VCT_MISMATCH', 'The document is of another type', 'docType');
  }
}

function judgeValidity({ mso }: PresentedMdoc, { issuer, atMs }: MdocExpectation): void {
  const leewayMs = CLOCK_LEEWAY_SECONDS * 1000;
  if (mso.signedMs < issuer.notBeforeMs || mso.signedMs > issuer.notAfterMs) {
    refusePresentation('EXPIRED', "It was signed outside of the certificate's validity", 'signed');
  }
  if (atMs < mso.validFromMs - leewayMs) refusePresentation('EXPIRED', 'It is not valid yet', 'validFrom');
  if (atMs >= mso.validUntilMs + leewayMs) refusePresentation('EXPIRED', 'It has expired', 'validUntil');
}

/** Compares the digest of every element, over the bytes that were received (ISO 18013-5 section 9.1.2.5). */
function judgeDigests({ nameSpaces, mso }: PresentedMdoc): void {
  for (const [nameSpace, items] of nameSpaces) {
    for (const { digestId, name, tagged } of items) {
      const signed = mso.digests.get(nameSpace)?.get(digestId);
      if (signed !== undefined && equalBytes(signed, sha2(mso.hash, tagged))) continue;
      refusePresentation('DIGEST', 'An element is not what the issuer signed', `/${nameSpace}/${name}`);
    }
  }
}

/** Verifies the device's signature over DeviceAuthentication (ISO 18013-5 section 9.1.3.4). */
function verifyDevice(
  device: DeviceSigned | undefined,
  docType: string,
  key: SignatureKey,
  session: OpenId4VpSession,
): void {
  if (device === undefined) refusePresentation('KB_MISSING', 'The device signed nothing');
  const { nameSpaces, signature } = device;
  if (signature.payload !== undefined)
    refusePresentation('FORMAT', 'The payload of the device is not detached');
  const transcript = { encoded: openId4VpTranscript(session) };
  const authentication = ['DeviceAuthentication', transcript, docType, { encoded: nameSpaces }];
  if (!verifySign1(signature, writeCbor(embeddedCbor(authentication)), key)) {
    refusePresentation('KB_SIGNATURE', "The response is not signed by the document's key for this request");
  }
}

function claimsOf({ nameSpaces }: PresentedMdoc): JsonObject {
  return Object.fromEntries(
    [...nameSpaces].map(([nameSpace, items]) => [
      nameSpace,
      Object.fromEntries(items.map(({ name, value }) => [name, claimOf(value)])),
    ]),
  );
}

/**
 * Verifies an mdoc (ISO 18013-5 sections 9.1.2 and 9.1.3, OpenID4VP 1.0 appendix B.2): the issuer's signature, the type,
 * validity, the digest of every element, the device's signature for this request. Whether the issuer is trusted and the
 * document is not revoked is judged elsewhere. Stops at the first violation: SIGNATURE, VCT_MISMATCH, EXPIRED, DIGEST,
 * KB_MISSING, KB_SIGNATURE, FORMAT.
 */
export function verifyMdoc(presented: PresentedMdoc, expected: MdocExpectation): Judgement<VerifiedMdoc> {
  return judge(() => {
    const { docType, issuerAuth, mso, msoBytes, device } = presented;
    if (!verifySign1(issuerAuth, msoBytes, expected.issuer.key)) {
      refusePresentation('SIGNATURE', "The document is not signed by the issuer's key");
    }
    judgeDocType(presented, expected.docType);
    judgeValidity(presented, expected);
    judgeDigests(presented);
    const deviceKey = findCoseJwk(mso.deviceKey);
    const key = findP256Key(deviceKey);
    if (deviceKey === undefined || key === undefined) {
      refusePresentation('KB_SIGNATURE', "The document's key is not on P-256", 'deviceKey');
    }
    if (expected.session !== undefined) verifyDevice(device, docType, key, expected.session);
    const { status, validUntilMs } = mso;
    return { docType, claims: claimsOf(presented), deviceKey, status, validUntilMs };
  });
}
