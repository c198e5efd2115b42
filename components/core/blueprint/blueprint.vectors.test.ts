import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../encoding/jcs.ts';
import { contentHash, execDefHash, publicationTxId, publishedForm, structuralHash } from './hashes.ts';
import { readDefinition } from './members.ts';
import { buildPublication, findPublication, type PublishingTransaction } from './publication.ts';

interface Hashes {
  readonly publicationTxId: string;
  readonly contentHash: string;
  readonly execDefHash: string;
  readonly structuralHash: string;
}

interface Vectors {
  readonly registerId: string;
  readonly publishedBy: string;
  readonly cases: readonly (Hashes & {
    readonly name: string;
    readonly definition: string;
    readonly published: string;
  })[];
  readonly publication: {
    readonly record: PublishingTransaction;
    readonly payload: string;
    readonly wrong: readonly PublishingTransaction[];
    readonly wrongPayloads: readonly string[];
  };
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`vectors/${name}`, import.meta.url), 'utf8'));
const vectors: Vectors = read('blueprint.json');
const { registerId } = vectors;

/** Published figures of the example and of changed copies. */
const noted: Readonly<Record<string, Omit<Hashes, 'contentHash'>>> = {
  'as it is': {
    publicationTxId: '426b5a72291adeac7003fa2584b3af68fe74cfb73dc9c542f8d7e9c0f7600854',
    execDefHash: '7f6a9f0ac61d990c8a7f04c29951252f38f80bdca9ee610ffd7d1438b44d022e',
    structuralHash: '07681d3529ae5f48b01f7b8476999f2b1d5aba0bc50bc9d5fd7511a15125fd53',
  },
  'another title': {
    publicationTxId: '74f4a6bca56758c61221bcae3eaff2938cdcdbd30629f23a14689d860aa43224',
    execDefHash: '7f6a9f0ac61d990c8a7f04c29951252f38f80bdca9ee610ffd7d1438b44d022e',
    structuralHash: '07681d3529ae5f48b01f7b8476999f2b1d5aba0bc50bc9d5fd7511a15125fd53',
  },
  'a presentation keyword': {
    publicationTxId: 'b8da7206f36a261d9479f6d48e65fd1863a96b3f10dc0007c9ca788c84558c52',
    execDefHash: '7f6a9f0ac61d990c8a7f04c29951252f38f80bdca9ee610ffd7d1438b44d022e',
    structuralHash: '1f3e14d381218e5fbd7dbe8fb7c1c940305e11d67bda5b1998774d0af5acb043',
  },
  'one more required field': {
    publicationTxId: 'ea01b43856e1750e89834e2130a93d520d18e8a7373e4b9c1ff712531e245773',
    execDefHash: '78e925882b3118943d20c8c80542bdcf6f89f71a054dbdad4b9e77f87cc3c324',
    structuralHash: '6c50c119f04212b51a843a5fd0651ea324a04fe738cf35ba8be3881cb96b8993',
  },
};

function hashesOf(definition: Readonly<Record<string, unknown>>): Hashes {
  return {
    publicationTxId: publicationTxId(registerId, String(definition['id']), definition),
    contentHash: contentHash(definition),
    execDefHash: execDefHash(definition),
    structuralHash: structuralHash(definition),
  };
}

describe('hashes of blueprints', () => {
  test.each(vectors.cases)('$name', ({ definition, published, ...expected }) => {
    const value = JSON.parse(definition);
    expect(hashesOf(value)).toEqual({
      publicationTxId: expected.publicationTxId,
      contentHash: expected.contentHash,
      execDefHash: expected.execDefHash,
      structuralHash: expected.structuralHash,
    });
    expect(canonicalJson(publishedForm(value))).toBe(published);
  });

  test.each(Object.keys(noted))('%s has the published figures', (name) => {
    const found = vectors.cases.find((one) => one.name === name);
    expect(hashesOf(JSON.parse(found?.definition ?? '{}'))).toMatchObject(noted[name] ?? {});
  });

  test('the published form of the example has 6,279 bytes', () => {
    const published = canonicalJson(publishedForm(read('site-permit.json')));
    expect(Buffer.byteLength(published)).toBe(6_279);
  });
});

describe('publications of blueprints', () => {
  const { record, payload, wrong, wrongPayloads } = vectors.publication;

  test('the transaction equals that of an independent program', () => {
    const definition = readDefinition(read('site-permit.json'));
    if (!('id' in definition)) throw new Error(JSON.stringify(definition));
    const made = buildPublication(registerId, definition, vectors.publishedBy);
    expect(canonicalJson(made.payload)).toBe(payload);
    expect([made.txId, made.metadata]).toEqual([record.txId, record.metadata]);
    expect(findPublication(record, Buffer.from(payload))).toMatchObject({ txId: record.txId });
  });

  test.each(wrong.map((each) => [JSON.stringify(each), each] as const))(
    '%s is no publication',
    (_text, each) => {
      expect(findPublication(each, Buffer.from(payload))).toBeUndefined();
    },
  );

  test.each(wrongPayloads)('payload %s publishes nothing', (text) => {
    expect(findPublication(record, Buffer.from(text))).toBeUndefined();
  });
});
