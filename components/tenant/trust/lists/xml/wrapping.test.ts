import { beforeAll, describe, expect, it } from 'vitest';
import {
  GRANTED,
  listBody,
  makeCertificate,
  rootClose,
  rootOpen,
  serviceOf,
  signList,
  type TestCertificate,
  type TestList,
} from '../lists.fixture.ts';
import { readXml } from './read.ts';
import { prepareLibrary } from './verify.ts';

let signer: TestCertificate;
let anchor: TestCertificate;
let other: TestCertificate;
let evil: TestCertificate;
let list: TestList;

beforeAll(async () => {
  prepareLibrary();
  [signer, anchor, other, evil] = await Promise.all([
    makeCertificate({ name: 'Signer' }),
    makeCertificate({ name: 'Anchor' }),
    makeCertificate({ name: 'Other' }),
    makeCertificate({ name: 'Evil' }),
  ]);
  list = { sequence: 7, services: [{ certificates: [anchor.base64] }] };
});

const read = (text: string) => readXml(text, { signerSha256: signer.sha256, nowMs: Date.UTC(2026, 5, 1) });

async function expectFault(text: string, kind: 'malformed' | 'signature', message: string) {
  await expect(read(text)).rejects.toMatchObject({ name: 'ListFault', kind });
  await expect(read(text)).rejects.toThrow(message);
}

describe('signature wrapping', () => {
  const forged = (): TestList => ({ sequence: 9, services: [{ certificates: [evil.base64] }] });

  it('the signed root moved into a root of the attacker', async () => {
    const text = signList(list, { signer });
    const moved = `${rootOpen.replace('"TL"', '"W"')}${listBody(forged())}<Extension>${text}</Extension>${rootClose}`;
    await expectFault(moved, 'signature', 'no signature below its root');
  });

  it('the signed root moved into an object of its signature', async () => {
    const text = signList(list, { signer });
    const signature = text.slice(text.indexOf('<ds:Signature '), text.indexOf('</ds:Signature>'));
    const original = `${rootOpen}${listBody(list)}${rootClose}`;
    const wrapped =
      `${rootOpen.replace('"TL"', '"W"')}${listBody(forged())}${signature}` +
      `<ds:Object>${original}</ds:Object></ds:Signature>${rootClose}`;
    await expectFault(wrapped, 'signature', 'Object occurs twice');
    const merged = wrapped.replace('</ds:Object><ds:Object>', '');
    await expectFault(merged, 'signature', 'does not fit');
  });

  it('a second signature, which an enveloped transform would remove too', async () => {
    const text = signList(list, { signer });
    const hidden = `<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#">${serviceOf({ certificates: [evil.base64] })}</ds:Signature>`;
    await expectFault(text.replace(rootClose, `${hidden}${rootClose}`), 'signature', 'more than one');
    const nested = text.replace('<TSPServices>', `<TSPServices>${hidden}`);
    await expectFault(nested, 'signature', 'more than one');
    const inObject = text.replace('</xades:QualifyingProperties>', `</xades:QualifyingProperties>${hidden}`);
    await expectFault(inObject, 'signature', 'more than one');
  });

  it('anchors inside the signature, which is not digested', async () => {
    const inside = `<TrustServiceProviderList xmlns="http://uri.etsi.org/02231/v2#"><TrustServiceProvider><TSPServices>${serviceOf({ certificates: [evil.base64] })}</TSPServices></TrustServiceProvider></TrustServiceProviderList>`;
    const text = signList(list, { signer }).replace('</ds:KeyInfo>', `${inside}</ds:KeyInfo>`);
    const { content } = await read(text);
    expect(content.services.flatMap(({ certificates }) => certificates)).toEqual([anchor.base64]);
  });

  it('an Id that occurs twice, in whatever spelling', async () => {
    const text = signList(list, { signer });
    for (const name of ['Id', 'ID', 'id', 'xml:id']) {
      const doubled = text.replace('</ds:Object>', `<ds:X ${name}="xades-sig"/></ds:Object>`);
      await expectFault(doubled, 'malformed', 'Id occurs twice');
    }
  });

  it('a second list of services beside the signed one', async () => {
    const added = `<TrustServiceProviderList><TrustServiceProvider><TSPServices>${serviceOf({ certificates: [evil.base64] })}</TSPServices></TrustServiceProvider></TrustServiceProviderList>`;
    const text = signList(list, { signer }).replace('<ds:Signature ', `${added}<ds:Signature `);
    await expectFault(text, 'signature', 'does not fit');
  });

  it('a second SignedInfo, and a reference of another namespace', async () => {
    const text = signList(list, { signer });
    const info = text.slice(text.indexOf('<ds:SignedInfo'), text.indexOf('<ds:SignatureValue>'));
    await expectFault(text.replace(info, `${info}${info}`), 'signature', 'SignedInfo occurs twice');
    const foreign = text
      .replace('<ds:Reference URI=""', '<Reference URI=""')
      .replace('</ds:Reference>', '</Reference>');
    await expectFault(foreign, 'signature', 'must cover the whole list');
  });

  it('content hidden in the value of a namespace, which the library canonicalizes without escapes', async () => {
    const edge = '<p:x xmlns:p="u"></p:x>';
    const services = `<TSPServices>${serviceOf({ certificates: [other.base64] })}</TSPServices>`;
    const text = signList({ ...list, extra: `${edge}${services}${edge}` }, { signer });
    // the same canonical text, where the document has one element without children
    const value = `u"></p:x>${services}<p:x xmlns:p="u`.replaceAll('<', '&lt;');
    const hiding = text.replace(`${edge}${services}${edge}`, `<p:x xmlns:p='${value}'></p:x>`);
    expect(hiding).not.toBe(text);
    const { content } = await read(hiding);
    expect(content.services.flatMap(({ certificates }) => certificates)).toEqual([
      other.base64,
      anchor.base64,
    ]);
  });

  it('a comment in a value, which is no part of what is signed, changes nothing', async () => {
    const text = signList(list, { signer });
    const commented = text
      .replace('<ServiceStatus>http://', '<ServiceStatus>http:<!-- x -->//')
      .replace('<TSLSequenceNumber>7', '<TSLSequenceNumber><!-- 9 -->7')
      .replace(anchor.base64, `${anchor.base64.slice(0, 40)}<!-- y -->${anchor.base64.slice(40)}`);
    const { content } = await read(commented);
    expect(content).toEqual((await read(text)).content);
    // withdrawn in the signed text stays withdrawn
    const withdrawn = signList(
      { services: [{ status: `${GRANTED}-not`, certificates: [anchor.base64] }] },
      { signer },
    );
    const cut = withdrawn.replace(`${GRANTED}-not`, `${GRANTED}<!---->-not`);
    expect((await read(cut)).content.services).toMatchObject([{ isGranted: false }]);
  });
});
