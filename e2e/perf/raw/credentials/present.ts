import { createPublicKey, hash, type KeyObject, verify, X509Certificate } from 'node:crypto';
import { openId4VpTranscript } from '#core/credential/mdoc/verify.ts';
import { cborBytes, findCborMember, readCbor } from '#core/encoding/cbor.ts';
import { embeddedCbor, writeCbor } from '#core/encoding/cbor-writer.ts';
import type { RawRequest } from './store.ts';

const dsaEncoding = 'ieee-p1363';
const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString());

function assertSigned(key: KeyObject, message: Uint8Array, signature: Uint8Array): void {
  if (!verify('sha256', message, { key, dsaEncoding }, signature)) throw new Error('a signature is wrong');
}

function assertJws(key: KeyObject, jws: string): void {
  const end = jws.lastIndexOf('.');
  assertSigned(key, Buffer.from(jws.slice(0, end)), Buffer.from(jws.slice(end + 1), 'base64url'));
}

/** The claims of a presented SD-JWT VC: both signatures, digests, key binding. The leaf vouches for itself. */
export function verifySdJwt(presentation: string, request: RawRequest): object {
  const [jws = '', ...rest] = presentation.split('~');
  const disclosures = rest.slice(0, -1);
  const binding = rest.at(-1) ?? '';
  const [head, body] = jws.split('.');
  const { x5c } = decode(head);
  const payload = decode(body);
  assertJws(new X509Certificate(Buffer.from(x5c[0], 'base64')).publicKey, jws);
  const claims: Record<string, unknown> = {};
  for (const one of disclosures) {
    if (!payload._sd.includes(hash('sha256', one, 'base64url'))) throw new Error('a digest is missing');
    const [, name, value] = decode(one);
    claims[name] = value;
  }
  assertJws(createPublicKey({ key: payload.cnf.jwk, format: 'jwk' }), binding);
  const { aud, nonce, sd_hash, iat } = decode(binding.split('.')[1]);
  const bound = presentation.slice(0, presentation.lastIndexOf('~') + 1);
  const isBound = aud === request.audience && nonce === request.nonce;
  if (!isBound || sd_hash !== hash('sha256', bound, 'base64url') || Math.abs(Date.now() / 1000 - iat) > 300)
    throw new Error('the key binding is of another request');
  return claims;
}

type Node = ReturnType<typeof readCbor>;

function bytesOf(node: Node | undefined): Uint8Array {
  if (node?.kind !== 'bytes') throw new Error('no bytes');
  return node.value;
}

function itemsOf(node: Node | undefined): readonly Node[] {
  if (node?.kind !== 'array') throw new Error('no array');
  return node.items;
}

function at(node: Node | undefined, ...path: (string | number)[]): Node | undefined {
  let found = node;
  for (const name of path) found = found === undefined ? undefined : findCborMember(found, name);
  return found;
}

/** COSE_Sign1 over what is signed (RFC 9052, section 4.4). */
function assertCose(key: KeyObject, [header, payload, signature]: readonly Uint8Array[]): void {
  const signed = writeCbor(['Signature1', header ?? '', new Uint8Array(0), payload ?? '']);
  assertSigned(key, signed, signature ?? new Uint8Array(0));
}

/** The content of a tagged byte string. */
function embedded(node: Node | undefined): Node {
  if (node?.kind !== 'tag') throw new Error('no tag');
  return readCbor(bytesOf(node.inner));
}

const text = (node: Node | undefined): string => (node?.kind === 'text' ? node.value : '');

/** The elements of a presented mdoc: signatures of issuer and device, and digests (ISO 18013-5, section 9). */
export function verifyMdoc(presentation: string, request: RawRequest): object {
  const response = readCbor(Buffer.from(presentation, 'base64url'));
  const [document] = itemsOf(at(response, 'documents'));
  const [header, unprotected, payload, signature] = itemsOf(at(document, 'issuerSigned', 'issuerAuth'));
  const leaf = new X509Certificate(bytesOf(at(unprotected, 33)));
  assertCose(leaf.publicKey, [header, payload, signature].map(bytesOf));
  const mso = embedded(readCbor(bytesOf(payload)));
  const claims: Record<string, string> = {};
  const spaces = at(document, 'issuerSigned', 'nameSpaces');
  for (const { key: space, value } of spaces?.kind === 'map' ? spaces.entries : []) {
    const digests = at(mso, 'valueDigests', text(space));
    for (const item of itemsOf(value)) {
      const element = embedded(item);
      const id = at(element, 'digestID');
      const digest = at(digests, id?.kind === 'integer' ? Number(id.value) : -1);
      const isSame = Buffer.compare(hash('sha256', cborBytes(item), 'buffer'), bytesOf(digest)) === 0;
      if (!isSame) throw new Error('a digest is wrong');
      claims[text(at(element, 'elementIdentifier'))] = text(at(element, 'elementValue'));
    }
  }
  assertDevice(document, mso, request);
  return claims;
}

function assertDevice(document: Node | undefined, mso: Node, request: RawRequest): void {
  const device = at(mso, 'deviceKeyInfo', 'deviceKey');
  const coordinate = (label: number) => Buffer.from(bytesOf(at(device, label))).toString('base64url');
  const jwk = { kty: 'EC', crv: 'P-256', x: coordinate(-2), y: coordinate(-3) };
  const transcript = openId4VpTranscript({
    clientId: request.audience,
    nonce: request.nonce,
    responseUri: request.responseUri,
    encryptionKeyThumbprint: undefined,
  });
  const docType = text(at(document, 'docType'));
  const authentication = writeCbor(
    embeddedCbor(['DeviceAuthentication', { encoded: transcript }, docType, embeddedCbor(new Map())]),
  );
  const [header, , , signature] = itemsOf(at(document, 'deviceSigned', 'deviceAuth', 'deviceSignature'));
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  assertCose(key, [bytesOf(header), authentication, bytesOf(signature)]);
}
