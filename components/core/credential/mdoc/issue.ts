import { sha256 } from '../../crypto/hash.ts';
import { encodeBase64Url, findBase64Any } from '../../encoding/base64.ts';
import { type CborTagged, type CborValue, embeddedCbor, writeCbor } from '../../encoding/cbor-writer.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { AppError } from '../../errors/errors.ts';
import type { StatusReference } from '../status-list/reference.ts';
import { COSE_EC2, COSE_HEADER, COSE_KEY, COSE_P256, ES256, findP256Key, signedBytes } from './cose.ts';

/** What an mdoc states. */
export interface MdocContent {
  readonly docType: string;
  /** Elements by namespace; see `mdocElement` for their types. */
  readonly nameSpaces: Readonly<Record<string, JsonObject>>;
  /** Public JWK of the device on P-256. */
  readonly deviceKey: JsonObject;
  /** Milliseconds since the epoch; written in whole seconds. */
  readonly signedMs: number;
  readonly validFromMs: number;
  readonly validUntilMs: number;
  readonly status: StatusReference | undefined;
  /** DER, the document signer first; never the root. */
  readonly certificates: readonly Uint8Array[];
}

/** What issuing needs from outside. */
interface MdocIssuer {
  /** Random bytes. */
  random(sizeBytes: number): Uint8Array;
  /** Signs a message by ES256 with the document signer's key: r followed by s, 64 bytes. */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

const RANDOM_BYTES = 32;
const FULL_DATE = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/;
const DATE_TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/;
/** Elements of ISO 18013-5 section 7.2.1 that are byte strings, beside biometric templates. */
const BYTE_ELEMENTS = ['portrait', 'signature_usual_mark', 'enrolment_portrait_image'];

function refuse(message: string): never {
  throw new AppError('invalid', 'INVALID_MDOC', message);
}

function textElement(name: string, value: string): CborValue {
  if (BYTE_ELEMENTS.includes(name) || name.startsWith('biometric_template_')) {
    return findBase64Any(value) ?? refuse(`The element ${name} is no base64`);
  }
  if (!name.endsWith('_date')) return value;
  if (FULL_DATE.test(value)) return { tag: 1004, value };
  return DATE_TIME.test(value) ? { tag: 0, value } : value;
}

/**
 * The CBOR value of an element or of a member inside one (ISO 18013-5 section 7.2.1): names that end in `_date` are
 * full-date (tag 1004) or tdate (tag 0), portraits and the like are byte strings given as base64, everything else is of
 * the type that it has in JSON.
 * @throws AppError invalid INVALID_MDOC
 */
function mdocElement(name: string, value: unknown): CborValue {
  if (typeof value === 'string') return textElement(name, value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => mdocElement(name, item));
  if (!isJsonObject(value)) refuse(`The element ${name} has no value`);
  return new Map(Object.entries(value).map(([member, inner]) => [member, mdocElement(member, inner)]));
}

/** A time in whole seconds (ISO 18013-5 section 9.1.2.4). */
function tdate(ms: number): CborTagged {
  return { tag: 0, value: `${new Date(ms).toISOString().slice(0, 19)}Z` };
}

function coseKey({ x, y }: JsonObject): CborValue {
  const coordinate = (value: unknown): Uint8Array => Buffer.from(String(value), 'base64url');
  return new Map<number, CborValue>([
    [COSE_KEY.type, COSE_EC2],
    [COSE_KEY.curve, COSE_P256],
    [COSE_KEY.x, coordinate(x)],
    [COSE_KEY.y, coordinate(y)],
  ]);
}

/** Elements of a namespace with their digests. Random values decide the ids, so that an id says nothing of its element. */
function signedItems(elements: JsonObject, random: MdocIssuer['random']): readonly CborTagged[] {
  const salted = Object.entries(elements).map(([name, value]) => ({
    name,
    value,
    salt: random(RANDOM_BYTES),
  }));
  salted.sort((left, right) => Buffer.compare(left.salt, right.salt));
  return salted.map(({ name, value, salt }, digestId) =>
    embeddedCbor(
      new Map<string, CborValue>([
        ['digestID', digestId],
        ['random', salt],
        ['elementIdentifier', name],
        ['elementValue', mdocElement(name, value)],
      ]),
    ),
  );
}

function judgeContent({ docType, nameSpaces, deviceKey, certificates, ...times }: MdocContent): void {
  const { validFromMs, validUntilMs } = times;
  if (docType === '' || certificates.length === 0) refuse('An mdoc has a type and a certificate');
  const elements = Object.values(nameSpaces);
  if (elements.length === 0 || elements.some((each) => Object.keys(each).length === 0)) {
    refuse('An mdoc has namespaces with elements');
  }
  if (findP256Key(deviceKey) === undefined) refuse('The key of the device is not on P-256');
  if (!(validFromMs < validUntilMs)) refuse('The validity ends before it begins');
}

function securityObject(content: MdocContent, items: ReadonlyMap<string, readonly CborTagged[]>): CborTagged {
  const digests = [...items].map(([nameSpace, list]): [string, CborValue] => [
    nameSpace,
    new Map(list.map((item, digestId) => [digestId, sha256(writeCbor(item))])),
  ]);
  const { status } = content;
  return embeddedCbor(
    new Map<string, CborValue>([
      ['version', '1.0'],
      ['digestAlgorithm', 'SHA-256'],
      ['docType', content.docType],
      ['valueDigests', new Map(digests)],
      ['deviceKeyInfo', new Map([['deviceKey', coseKey(content.deviceKey)]])],
      [
        'validityInfo',
        new Map([
          ['signed', tdate(content.signedMs)],
          ['validFrom', tdate(content.validFromMs)],
          ['validUntil', tdate(content.validUntilMs)],
        ]),
      ],
      ...(status === undefined ? [] : [['status', statusOf(status)] as const]),
    ]),
  );
}

function statusOf({ index, uri }: StatusReference): CborValue {
  return new Map([
    [
      'status_list',
      new Map<string, CborValue>([
        ['idx', index],
        ['uri', uri],
      ]),
    ],
  ]);
}

/**
 * Issues an mdoc (ISO 18013-5 section 9.1.2, OpenID4VCI 1.0 appendix A.2): IssuerSigned in deterministic CBOR, signed with
 * ES256, as base64url.
 * @throws AppError invalid INVALID_MDOC for content that has no mdoc; what `sign` throws
 */
export async function issueMdoc(content: MdocContent, { random, sign }: MdocIssuer): Promise<string> {
  judgeContent(content);
  const items = new Map(
    Object.entries(content.nameSpaces).map(([nameSpace, elements]) => [
      nameSpace,
      signedItems(elements, random),
    ]),
  );
  const protectedHeader = writeCbor(new Map([[COSE_HEADER.algorithm, ES256]]));
  const payload = writeCbor(securityObject(content, items));
  const signature = await sign(signedBytes(protectedHeader, payload));
  if (signature.length !== 64) refuse('The signature is not r followed by s');
  const [leaf = new Uint8Array(0), ...intermediates] = content.certificates;
  const x5chain: CborValue = intermediates.length === 0 ? leaf : [leaf, ...intermediates];
  const issuerAuth: CborValue = [
    protectedHeader,
    new Map([[COSE_HEADER.x5chain, x5chain]]),
    payload,
    signature,
  ];
  const issuerSigned = new Map<string, CborValue>([
    ['nameSpaces', items],
    ['issuerAuth', issuerAuth],
  ]);
  return encodeBase64Url(writeCbor(issuerSigned));
}
