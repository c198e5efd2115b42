import { describe, expect, it } from 'vitest';
import { type CborNode, cborBytes, readCbor } from '../../encoding/cbor.ts';
import { type CborValue, writeCbor } from '../../encoding/cbor-writer.ts';
import { chainTimeMs } from '../../trust/testing/chains.ts';
import { judgeMdocForm } from './parse.ts';
import { presentByAuth0 } from './testing/auth0.ts';
import {
  contentOf,
  deviceKeys,
  docType,
  documentSigner,
  elements,
  issue,
  nameSpace,
  partsOf,
  presentParts,
  session,
} from './testing/documents.ts';
import { verifyMdoc } from './verify.ts';

const signer = documentSigner();
const device = deviceKeys();
const own = presentParts(partsOf(await issue(signer, contentOf(signer, device.jwk))), device);
const ofAuth0 = await presentByAuth0(signer, { device, atMs: chainTimeMs, elements });

function verdict(response: CborValue): string {
  const form = judgeMdocForm(Buffer.from(writeCbor(response)).toString('base64url'));
  const expected = { issuer: signer.issuer, docType, session, atMs: chainTimeMs };
  const { violations } = form.result === undefined ? form : verifyMdoc(form.result, expected);
  return violations[0]?.code ?? 'ok';
}

type Path = readonly (string | number)[];

/** The response with another value in one place, or without what is there. */
function replaced(node: CborNode, [step, ...rest]: Path, value: CborValue | undefined): CborValue {
  const inside = (child: CborNode): CborValue | undefined =>
    rest.length === 0 ? value : replaced(child, rest, value);
  if (node.kind === 'array') {
    return node.items.flatMap((item, at) => {
      const made = at === step ? inside(item) : { encoded: cborBytes(item) };
      return made === undefined ? [] : [made];
    });
  }
  if (node.kind !== 'map') throw new Error(`no ${step}`);
  return new Map(
    node.entries.flatMap(({ key, value: child }): [string | number, CborValue][] => {
      if (key.kind !== 'text' && key.kind !== 'integer') throw new Error('no key');
      const name = key.kind === 'text' ? key.value : Number(key.value);
      const made = name === step ? inside(child) : { encoded: cborBytes(child) };
      return made === undefined ? [] : [[name, made]];
    }),
  );
}

const odd: readonly (readonly [string, CborValue])[] = [
  ['null', null],
  ['true', true],
  ['-1', -1],
  ['1.5', 1.5],
  ['a text', 'x'],
  ['bytes', Buffer.of(1, 2)],
  ['an array', []],
  ['an array of arrays', [[]]],
  ['a map', new Map()],
  ['a tagged text', { tag: 24, value: 'x' }],
  ['embedded CBOR that is cut', { tag: 24, value: Buffer.of(0x82) }],
];

const document: Path = ['documents', 0];
const issuerSigned: Path = [...document, 'issuerSigned'];
const deviceSigned: Path = [...document, 'deviceSigned'];
const signature: Path = [...deviceSigned, 'deviceAuth', 'deviceSignature'];

/** A place, its verdict when nothing is there, its verdict for odd values, and odd values with verdicts of their own. */
const places: readonly (readonly [Path, string, string, Readonly<Record<string, string>>])[] = [
  [['version'], 'FORMAT', 'FORMAT', {}],
  [['status'], 'FORMAT', 'FORMAT', {}],
  [['documents'], 'FORMAT', 'FORMAT', {}],
  [document, 'FORMAT', 'FORMAT', {}],
  [[...document, 'docType'], 'FORMAT', 'FORMAT', { 'a text': 'VCT_MISMATCH' }],
  [issuerSigned, 'FORMAT', 'FORMAT', {}],
  [[...issuerSigned, 'issuerAuth'], 'FORMAT', 'FORMAT', {}],
  [[...issuerSigned, 'issuerAuth', 0], 'FORMAT', 'FORMAT', {}],
  [[...issuerSigned, 'issuerAuth', 1], 'FORMAT', 'FORMAT', { 'a map': 'ok' }],
  [[...issuerSigned, 'issuerAuth', 2], 'FORMAT', 'FORMAT', {}],
  [[...issuerSigned, 'issuerAuth', 3], 'FORMAT', 'FORMAT', { bytes: 'SIGNATURE' }],
  // A holder may disclose nothing.
  [[...issuerSigned, 'nameSpaces'], 'ok', 'FORMAT', { 'a map': 'ok' }],
  [[...issuerSigned, 'nameSpaces', nameSpace], 'ok', 'FORMAT', {}],
  [[...issuerSigned, 'nameSpaces', nameSpace, 0], 'ok', 'FORMAT', {}],
  [deviceSigned, 'KB_MISSING', 'FORMAT', {}],
  [[...deviceSigned, 'nameSpaces'], 'FORMAT', 'FORMAT', {}],
  [[...deviceSigned, 'deviceAuth'], 'KB_MISSING', 'KB_MISSING', {}],
  [signature, 'KB_MISSING', 'FORMAT', {}],
  [[...signature, 0], 'FORMAT', 'FORMAT', {}],
  [[...signature, 1], 'FORMAT', 'FORMAT', { 'a map': 'ok' }],
  [[...signature, 2], 'FORMAT', 'FORMAT', { null: 'ok' }],
  [[...signature, 3], 'FORMAT', 'FORMAT', { bytes: 'KB_SIGNATURE' }],
];

describe.each([
  ['of our own', readCbor(Buffer.from(own, 'base64url'))],
  ['of the library of Auth0', readCbor(ofAuth0)],
])('an mdoc %s', (_, whole) => {
  it('is accepted as it is', () => {
    expect(verdict({ encoded: cborBytes(whole) })).toBe('ok');
  });

  describe.each(places)('%j', (path, whenAbsent, whenOdd, others) => {
    it('absent', () => {
      expect(verdict(replaced(whole, path, undefined))).toBe(whenAbsent);
    });

    it.each(odd)('is %s', (name, value) => {
      expect(verdict(replaced(whole, path, value))).toBe(others[name] ?? whenOdd);
    });
  });
});
