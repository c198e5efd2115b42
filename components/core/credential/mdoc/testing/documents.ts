import { generateKeyPairSync, type KeyObject, randomBytes, sign as signBytes } from 'node:crypto';
import { findSpkiKey } from '../../../crypto/signature-key.ts';
import { encodeBase64Url } from '../../../encoding/base64.ts';
import { cborBytes, findCborMember, readCbor } from '../../../encoding/cbor.ts';
import { type CborValue, embeddedCbor, writeCbor } from '../../../encoding/cbor-writer.ts';
import type { JsonObject } from '../../../encoding/json.ts';
import {
  ALGORITHM,
  basicConstraints,
  certificateDer,
  chainTimeMs,
  dayMs,
  ecKey,
  keyUsage,
  purposes,
  type TestKey,
} from '../../../trust/testing/chains.ts';
import { der, oid, sequence } from '../../../trust/testing/der-writer.ts';
import { signedBytes } from '../cose.ts';
import { issueMdoc, type MdocContent } from '../issue.ts';
import {
  DOCUMENT_SIGNER,
  type MdocExpectation,
  type OpenId4VpSession,
  openId4VpTranscript,
} from '../verify.ts';

export const docType = 'org.iso.18013.5.1.mDL';
export const nameSpace = 'org.iso.18013.5.1';

export const session: OpenId4VpSession = {
  clientId: 'x509_san_dns:verifier.example',
  nonce: 'n-0123456789',
  responseUri: 'https://verifier.example/response',
  encryptionKeyThumbprint: undefined,
};

/** A key of a device. */
export interface DeviceKeys {
  readonly privateKey: KeyObject;
  readonly jwk: JsonObject;
  readonly privateJwk: Record<string, unknown>;
}

export function deviceKeys(namedCurve = 'P-256'): DeviceKeys {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
  return {
    privateKey,
    jwk: { ...publicKey.export({ format: 'jwk' }) },
    privateJwk: { ...privateKey.export({ format: 'jwk' }) },
  };
}

/** Signs a message with r followed by s. */
export function signP1363(privateKey: KeyObject, message: Uint8Array): Buffer {
  return signBytes('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' });
}

/** A document signer with a certificate; the certificate has a country, as ISO 18013-5 demands. */
export interface DocumentSigner {
  readonly key: TestKey;
  readonly certificate: Buffer;
  readonly issuer: MdocExpectation['issuer'];
}

export function documentSigner(atMs = chainTimeMs): DocumentSigner {
  const [key, root] = [ecKey('P-256'), ecKey('P-256')];
  const name = (text: string) =>
    sequence(
      der(0x31, sequence(oid('2.5.4.6'), der(0x13, Buffer.from('DE')))),
      der(0x31, sequence(oid('2.5.4.3'), der(0x0c, Buffer.from(text)))),
    );
  const [notBeforeMs, notAfterMs] = [atMs - 10 * dayMs, atMs + 10 * dayMs];
  const certificate = certificateDer({
    subject: name('signer'),
    issuer: name('root'),
    key,
    signer: root,
    notBeforeMs,
    notAfterMs,
    extensions: [basicConstraints(false), keyUsage(0), purposes(DOCUMENT_SIGNER.purpose)],
    algorithm: ALGORITHM.ecdsaSha256,
    version: 3,
    serial: 7,
  });
  const found = findSpkiKey(key.spki);
  if (found === undefined) throw new Error('no key');
  return { key, certificate, issuer: { key: found, notBeforeMs, notAfterMs } };
}

export const elements: JsonObject = {
  family_name: 'Müller',
  birth_date: '1990-02-28',
  portrait: Buffer.from([1, 2, 3]).toString('base64'),
  age_over_18: true,
  height: 181,
  ratio: 1.75,
  driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2015-07-01' }],
};

export function contentOf(
  signer: DocumentSigner,
  deviceKey: JsonObject,
  change: Partial<MdocContent> = {},
): MdocContent {
  return {
    docType,
    nameSpaces: { [nameSpace]: elements },
    deviceKey,
    signedMs: chainTimeMs - dayMs,
    validFromMs: chainTimeMs - dayMs,
    validUntilMs: chainTimeMs + dayMs,
    status: { index: 7, uri: 'https://issuer.example/lists/1' },
    certificates: [signer.certificate],
    ...change,
  };
}

/** Issues with the key of a document signer. */
export function issue(signer: DocumentSigner, content: MdocContent): Promise<string> {
  const sign = async (message: Uint8Array) => signP1363(signer.key.privateKey, message);
  return issueMdoc(content, { random: randomBytes, sign });
}

/** Parts of an issued mdoc that tests change. */
export interface IssuedParts {
  /** Items with their tags, by namespace. */
  readonly items: ReadonlyMap<string, readonly Uint8Array[]>;
  readonly protectedHeader: Uint8Array;
  readonly unprotectedHeader: ReadonlyMap<number, CborValue>;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

export function partsOf(issued: string): IssuedParts {
  const node = readCbor(Buffer.from(issued, 'base64url'));
  const [auth, spaces] = [findCborMember(node, 'issuerAuth'), findCborMember(node, 'nameSpaces')];
  if (auth?.kind !== 'array' || spaces?.kind !== 'map') throw new Error('no parts');
  const [protectedHeader, unprotectedHeader, payload, signature] = auth.items;
  if (protectedHeader?.kind !== 'bytes' || payload?.kind !== 'bytes' || signature?.kind !== 'bytes') {
    throw new Error('no bytes');
  }
  const chain = unprotectedHeader === undefined ? undefined : findCborMember(unprotectedHeader, 33);
  if (chain === undefined) throw new Error('no chain');
  return {
    items: new Map(
      spaces.entries.map(({ key, value }) => [
        key.kind === 'text' ? key.value : '',
        value.kind === 'array' ? value.items.map(cborBytes) : [],
      ]),
    ),
    protectedHeader: protectedHeader.value,
    unprotectedHeader: new Map([[33, { encoded: cborBytes(chain) }]]),
    payload: payload.value,
    signature: signature.value,
  };
}

export function issuerSigned(parts: IssuedParts): CborValue {
  const { items, protectedHeader, unprotectedHeader, payload, signature } = parts;
  const spaces = [...items].map(([name, list]): [string, CborValue] => [
    name,
    list.map((encoded) => ({ encoded })),
  ]);
  return new Map<string, CborValue>([
    ['nameSpaces', new Map(spaces)],
    ['issuerAuth', [protectedHeader, unprotectedHeader, payload, signature]],
  ]);
}

/** What a device presents; each part can be replaced. */
export interface Presentation {
  readonly docType: string;
  readonly session: OpenId4VpSession;
  readonly device: DeviceKeys;
  readonly protectedHeader: Uint8Array;
  readonly payload: Uint8Array | null;
  /** Replaces the signature by another member. */
  readonly auth?: (signature: CborValue) => ReadonlyMap<string, CborValue>;
  readonly response?: (document: CborValue) => ReadonlyMap<string, CborValue>;
}

export const es256Header = writeCbor(new Map([[1, -7]]));

/** Presents an issued mdoc, as base64url of a DeviceResponse. */
export function presentParts(
  parts: IssuedParts,
  device: DeviceKeys,
  change: Partial<Presentation> = {},
): string {
  const made: Presentation = {
    docType,
    session,
    device,
    protectedHeader: es256Header,
    payload: null,
    ...change,
  };
  const nameSpaces = embeddedCbor(new Map());
  const transcript = { encoded: openId4VpTranscript(made.session) };
  const authentication = writeCbor(
    embeddedCbor(['DeviceAuthentication', transcript, made.docType, nameSpaces]),
  );
  const signature = signP1363(made.device.privateKey, signedBytes(made.protectedHeader, authentication));
  const sign1: CborValue = [made.protectedHeader, new Map(), made.payload, signature];
  const auth = made.auth?.(sign1) ?? new Map([['deviceSignature', sign1]]);
  const document = new Map<string, CborValue>([
    ['docType', made.docType],
    ['issuerSigned', issuerSigned(parts)],
    [
      'deviceSigned',
      new Map<string, CborValue>([
        ['nameSpaces', nameSpaces],
        ['deviceAuth', auth],
      ]),
    ],
  ]);
  const response =
    made.response?.(document) ??
    new Map<string, CborValue>([
      ['version', '1.0'],
      ['documents', [document]],
      ['status', 0],
    ]);
  return encodeBase64Url(writeCbor(response));
}
