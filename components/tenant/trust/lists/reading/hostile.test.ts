import fc from 'fast-check';
import { beforeAll, expect, it, vi } from 'vitest';
import { fuzzing, mutatedBytes, mutatedJson } from '#core/encoding/testing/mutations.ts';
import {
  jwsOf,
  listBody,
  makeCertificate,
  rootClose,
  rootOpen,
  signatureOf,
  signList,
  type TestCertificate,
} from '../lists.fixture.ts';
import { ListFault } from '../values/fault.ts';
import { prepareLibrary } from '../xml/verify.ts';
import { readList } from './read-list.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const runs = fuzzing(process.env);

let signer: TestCertificate;
let anchor: TestCertificate;

beforeAll(async () => {
  prepareLibrary();
  [signer, anchor] = await Promise.all([makeCertificate({ name: 'Signer' }), makeCertificate()]);
});

/** The list of a document; undefined when it is refused as a list. */
async function listOf(document: string | Buffer) {
  try {
    const pin = { signerSha256: signer.sha256, nowMs: Date.UTC(2026, 5, 1) };
    return await readList(Buffer.from(document), pin);
  } catch (error) {
    if (error instanceof ListFault) return undefined;
    throw error;
  }
}

const entityList = () => ({
  LoTE: {
    ListAndSchemeInformation: {
      LoTEVersionIdentifier: 1,
      LoTESequenceNumber: 1,
      SchemeOperatorName: [{ lang: 'en', value: 'Wallets' }],
      SchemeTerritory: 'EU',
      ListIssueDateTime: '2026-01-01T00:00:00Z',
      NextUpdate: '2050-01-01T00:00:00Z',
    },
    TrustedEntitiesList: [
      {
        TrustedEntityServices: [
          {
            ServiceInformation: {
              ServiceTypeIdentifier: 'http://uri.etsi.org/19602/SvcType/PID/Issuance',
              ServiceDigitalIdentity: { X509Certificates: [{ val: anchor.base64 }] },
            },
          },
        ],
      },
    ],
  },
});

const xmlList = () => ({ services: [{ certificates: [anchor.base64] }] });

it.each([
  ['XML', () => signList(xmlList(), { signer })],
  ['JWS', () => jwsOf(entityList(), signer)],
])('a changed list in %s is refused, or is the same list', async (_, documentOf) => {
  const document = Buffer.from(documentOf());
  const original = await listOf(document);
  expect(original?.anchors).toHaveLength(1);
  await fc.assert(
    fc.asyncProperty(mutatedBytes(document), async (bytes) => {
      const found = await listOf(bytes);
      if (found !== undefined) expect(found).toEqual({ ...original, documentSha256: found.documentSha256 });
    }),
    runs(500),
  );
});

/** What holds for every list that is read. */
function isSound(found: Awaited<ReturnType<typeof listOf>>): boolean {
  if (found === undefined) return true;
  const { anchors, listIssueAtMs, schemeOperatorName, sequenceNumber, extracted } = found;
  expect(new Set(anchors.map(({ thumbprint }) => thumbprint)).size).toBe(anchors.length);
  expect(extracted).toBeGreaterThanOrEqual(anchors.length);
  expect(new Date(listIssueAtMs).toISOString()).toMatch(/^\d{4}-/);
  return sequenceNumber >= 1 && schemeOperatorName !== '' && !JSON.stringify(found).includes('\\u0000');
}

it('whatever a signer writes in a JWS, nothing but a list or a fault comes of it', async () => {
  const header = { alg: 'ES256', x5c: [signer.base64], typ: 'trustlist+jwt' };
  const parts = fc.record(
    { header: mutatedJson(header), list: mutatedJson(entityList()) },
    { requiredKeys: [] },
  );
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(parts, async (change) => {
      const made = { header, list: entityList(), ...change };
      const found = await listOf(jwsOf(made.list, signer, made.header as object));
      accepted += Number(found !== undefined);
      return isSound(found);
    }),
    runs(500),
  );
  expect(accepted).toBeGreaterThan(10);
});

it('whatever a signer writes in XML, nothing but a list or a fault comes of it', async () => {
  const body = listBody(xmlList());
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(mutatedBytes(Buffer.from(body)), async (bytes) => {
      const changed = bytes.toString('utf8');
      const signature = signatureOf(`${rootOpen}${changed}${rootClose}`, { signer });
      const found = await listOf(`${rootOpen}${changed}${signature}${rootClose}`);
      accepted += Number(found !== undefined);
      return isSound(found);
    }),
    runs(700),
  );
  expect(accepted).toBeGreaterThan(10);
});
