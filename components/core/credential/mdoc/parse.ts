import { isBase64Url } from '../../encoding/base64.ts';
import { type CborNode, cborBytes, findCborMember } from '../../encoding/cbor.ts';
import { type Judgement, judge } from '../../errors/judgement.ts';
import { refusePresentation } from '../presentation.ts';
import { bytesOf, type CoseSign1, parseCoseSign1, parsePresentedCbor } from './cose.ts';
import { type MobileSecurityObject, parseMobileSecurityObject } from './mso.ts';

/** One element that an issuer signed the digest of. */
interface IssuerSignedItem {
  readonly digestId: bigint;
  readonly name: string;
  readonly value: CborNode;
  /** The bytes that the digest covers, as they were received: the tag, the byte string and the item inside. */
  readonly tagged: Uint8Array;
}

/** What the device signed. */
export interface DeviceSigned {
  /** Namespaces of the device as they were received, with their tag. */
  readonly nameSpaces: Uint8Array;
  readonly signature: CoseSign1;
}

/** An mdoc as it was presented or issued (ISO 18013-5 section 8.3.2.1.2.2); nothing is verified yet. */
export interface PresentedMdoc {
  readonly docType: string;
  readonly nameSpaces: ReadonlyMap<string, readonly IssuerSignedItem[]>;
  readonly issuerAuth: CoseSign1;
  readonly mso: MobileSecurityObject;
  /** The payload of `issuerAuth`. */
  readonly msoBytes: Uint8Array;
  /** Undefined for a credential that is issued, not presented. */
  readonly device: DeviceSigned | undefined;
}

/** Longest presentation in characters: as long as a whole response may be. */
const MAX_LENGTH = 1024 * 1024;

function refuse(message: string): never {
  return refusePresentation('FORMAT', message);
}

function decode(text: string): CborNode {
  if (text === '' || text.length > MAX_LENGTH || !isBase64Url(text))
    refuse('The mdoc is no base64url, or too long');
  return parsePresentedCbor(Buffer.from(text, 'base64url'));
}

/** The item inside CBOR that is embedded in a byte string (RFC 8949 section 3.4.5.1). */
function embedded(node: CborNode | undefined, what: string): CborNode {
  if (node?.kind !== 'tag' || node.tag !== 24) refuse(`${what} is not embedded`);
  return parsePresentedCbor(bytesOf(node.inner, what));
}

function parseItem(node: CborNode): IssuerSignedItem {
  const item = embedded(node, 'An element');
  const [id, random, name, value] = ['digestID', 'random', 'elementIdentifier', 'elementValue'].map(
    (member) => findCborMember(item, member),
  );
  if (id?.kind !== 'integer' || id.value < 0n) refuse('The digest id of an element is no number');
  if (name?.kind !== 'text' || value === undefined) refuse('An element has no name or value');
  if (bytesOf(random, 'The random value of an element').length < 16) refuse('A random value is too short');
  return { digestId: id.value, name: name.value, value, tagged: cborBytes(node) };
}

function parseItems(node: CborNode): readonly IssuerSignedItem[] {
  if (node.kind !== 'array' || node.items.length === 0) refuse('A namespace has no elements');
  const items = node.items.map(parseItem);
  if (new Set(items.map(({ digestId }) => digestId)).size !== items.length) {
    refusePresentation('DIGEST', 'A digest id occurs twice');
  }
  if (new Set(items.map(({ name }) => name)).size !== items.length) {
    refusePresentation('DIGEST', 'An element occurs twice');
  }
  return items;
}

function parseNameSpaces(node: CborNode | undefined): PresentedMdoc['nameSpaces'] {
  // A holder may disclose nothing but the type.
  if (node === undefined) return new Map();
  if (node.kind !== 'map') refuse('The namespaces are no map');
  return new Map(
    node.entries.map(({ key, value }) => [
      key.kind === 'text' ? key.value : refuse('A namespace is no text'),
      parseItems(value),
    ]),
  );
}

function parseIssuerSigned(node: CborNode | undefined): Omit<PresentedMdoc, 'docType' | 'device'> {
  if (node?.kind !== 'map') refuse('The document has nothing that an issuer signed');
  const issuerAuth = parseCoseSign1(findCborMember(node, 'issuerAuth'), 'issuerAuth');
  const msoBytes = issuerAuth.payload ?? refuse('issuerAuth has no payload');
  const mso = parseMobileSecurityObject(embedded(parsePresentedCbor(msoBytes), 'The security object'));
  return { nameSpaces: parseNameSpaces(findCborMember(node, 'nameSpaces')), issuerAuth, mso, msoBytes };
}

function parseDeviceSigned(node: CborNode | undefined): DeviceSigned {
  if (node === undefined) refusePresentation('KB_MISSING', 'The device signed nothing');
  const nameSpaces = findCborMember(node, 'nameSpaces');
  if (nameSpaces === undefined || embedded(nameSpaces, "The device's namespaces").kind !== 'map') {
    refuse("The device's namespaces are no map");
  }
  const auth = findCborMember(node, 'deviceAuth');
  if (auth?.kind !== 'map') refusePresentation('KB_MISSING', 'The device signed nothing');
  if (findCborMember(auth, 'deviceMac') !== undefined) {
    refusePresentation('DEVICE_MAC_UNSUPPORTED', 'A device authenticates by its signature, not by a MAC');
  }
  const signature = findCborMember(auth, 'deviceSignature');
  if (signature === undefined) refusePresentation('KB_MISSING', 'The device signed nothing');
  return { nameSpaces: cborBytes(nameSpaces), signature: parseCoseSign1(signature, 'deviceSignature') };
}

function documentOf(response: CborNode): CborNode {
  const version = findCborMember(response, 'version');
  const status = findCborMember(response, 'status');
  const documents = findCborMember(response, 'documents');
  if (version?.kind !== 'text' || version.value !== '1.0')
    refuse('The device response is not of version 1.0');
  if (status?.kind !== 'integer' || status.value !== 0n) refuse('The device response has an error status');
  const [document, ...more] = documents?.kind === 'array' ? documents.items : [];
  if (document === undefined || more.length > 0) refuse('The device response has not one document');
  return document;
}

/**
 * Reads a presented mdoc as far as the issuer's key can be looked up: base64url of a DeviceResponse with one document
 * (OpenID4VP 1.0 appendix B.2). Violations FORMAT, SIGNATURE (algorithm), DIGEST (duplicates), KB_MISSING,
 * DEVICE_MAC_UNSUPPORTED.
 */
export function judgeMdocForm(text: string): Judgement<PresentedMdoc> {
  return judge(() => {
    const document = documentOf(decode(text));
    const docType = findCborMember(document, 'docType');
    if (docType?.kind !== 'text') refuse('The document has no type');
    const signed = parseIssuerSigned(findCborMember(document, 'issuerSigned'));
    return {
      docType: docType.value,
      ...signed,
      device: parseDeviceSigned(findCborMember(document, 'deviceSigned')),
    };
  });
}

/** The same for an mdoc that is issued: base64url of IssuerSigned (OpenID4VCI 1.0 appendix A.2). */
export function judgeIssuedMdocForm(text: string): Judgement<PresentedMdoc> {
  return judge(() => {
    const signed = parseIssuerSigned(decode(text));
    return { docType: signed.mso.docType, ...signed, device: undefined };
  });
}
