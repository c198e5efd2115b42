import { beforeAll, describe, expect, it } from 'vitest';
import { GRANTED, makeCertificate, signList, type TestCertificate, type TestList } from '../lists.fixture.ts';
import { WRAPPINGS, withAnchorsInSignature } from './hostile.fixture.ts';
import { readXml } from './read.ts';
import { prepareLibrary } from './verify.ts';

let signer: TestCertificate;
let anchor: TestCertificate;
let evil: TestCertificate;
let list: TestList;

beforeAll(async () => {
  prepareLibrary();
  [signer, anchor, evil] = await Promise.all([
    makeCertificate({ name: 'Signer' }),
    makeCertificate({ name: 'Anchor' }),
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
  it.each(Object.entries(WRAPPINGS))('%s', async (_name, { kind, message, text }) => {
    await expectFault(text(list, signer, evil), kind, message);
  });

  it('anchors inside the signature, which is not digested', async () => {
    const text = withAnchorsInSignature(signList(list, { signer }), evil);
    const { content } = await read(text);
    expect(content.services.flatMap(({ certificates }) => certificates)).toEqual([anchor.base64]);
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
