import { expect, it } from 'vitest';
import { createVerifier, nodeEd25519, type Verifier } from '../../crypto/verify.ts';
import { NOTE_KINDS } from '../../ledger/checkpoint.ts';
import { person } from '../../ledger/governance/testing/scene.ts';
import { type DisclosureEvidence, type DisclosureFinding, writeDisclosure } from './file.ts';
import { disclosureFile, evidence, instanceId } from './testing/shown.ts';
import { verifyDisclosure } from './verify.ts';

const verifier = createVerifier(nodeEd25519());
const locationsOf = (findings: readonly DisclosureFinding[]) => findings.map(({ location }) => location);

function findingsOf(whole: DisclosureEvidence, change: Partial<DisclosureEvidence>): readonly string[] {
  return locationsOf(verifyDisclosure(writeDisclosure({ ...whole, ...change }), verifier).findings);
}

/** Verifies the same signature once. */
function remembering(inner: Verifier): Verifier {
  const known = new Map<string, boolean>();
  const once = (check: object, verify: () => boolean): boolean => {
    const name = JSON.stringify(check);
    const result = known.get(name) ?? verify();
    known.set(name, result);
    return result;
  };
  return {
    verify: (check) => once(check, () => inner.verify(check)),
    verifyDigest: (check) => once(check, () => inner.verifyDigest(check)),
    verifyPreimage: (check) => once(check, () => inner.verifyPreimage(check)),
  };
}

it('a disclosure file proves a group, its recipients and its place', () => {
  const verdict = verifyDisclosure(disclosureFile(), verifier);
  expect(verdict.findings).toEqual([]);
  if (!('proven' in verdict)) throw new Error('not proven');
  const { shown, group, docket, checkpoint, record } = verdict.proven;
  expect(shown).toMatchObject({ fields: ['/*'], data: { siteReference: 'AB-1234' } });
  expect(group.jwe.recipients.map(({ header }) => header.kid)).toEqual(['w1applicant', 'w1office']);
  expect([docket.docketNumber, checkpoint.size, record.metadata['instanceId']]).toEqual([1, 3, instanceId]);
});

it('a changed byte is refused wherever it is, and the place is named', () => {
  const file = Buffer.from(disclosureFile());
  const memory = remembering(verifier);
  const refusedAt = (at: number) => {
    const changed = Uint8Array.from(file);
    changed[at] = (changed[at] ?? 0) ^ 1;
    return locationsOf(verifyDisclosure(changed, memory).findings);
  };
  for (let at = 0; at < file.length; at += 101) expect([at, refusedAt(at).length > 0]).toEqual([at, true]);
  const places = {
    record: 200,
    payload: 200,
    group: 36,
    inclusion: 16,
    log: 16,
    checkpoint: 120,
    checkpointKey: 60,
  };
  for (const [name, offset] of Object.entries(places)) {
    expect(refusedAt(file.indexOf(`"${name}":`) + name.length + offset)).toContainEqual(
      expect.stringMatching(`^/${name}`),
    );
  }
});

it('no byte may be missing or added', () => {
  const file = disclosureFile();
  const whole = Buffer.from(file);
  for (const other of [
    whole.subarray(0, -1),
    whole.subarray(0, whole.length / 2),
    Buffer.concat([whole, Buffer.from('\n')]),
    Buffer.concat([Buffer.from(' '), whole]),
    Buffer.from(whole.toString().replace('{', '{"extra":1,')),
    Buffer.from(whole.toString().replace('"data":{', '"data":{"a":1,"a":1,')),
    Buffer.from([0xff]),
    Buffer.of(),
  ]) {
    expect(verifyDisclosure(other, verifier).findings).not.toEqual([]);
  }
});

it('each part must be that of the others', () => {
  const whole = evidence();
  const { group, docket } = whole;
  const key = { ...whole.checkpointKey, publicKey: person(3).signer.publicKey };
  expect(findingsOf(whole, { group: { ...group, data: { ...group.data, floorAreaM2: 621 } } })).toEqual([
    '/group',
  ]);
  expect(findingsOf(whole, { group: { ...group, fields: ['/siteReference'] } })).toEqual(['/group']);
  expect(findingsOf(whole, { payload: Buffer.from('{}') })).toEqual(['/payload', '/payload']);
  expect(findingsOf(whole, { inclusion: whole.inclusion.slice(1) })).toEqual(['/inclusion']);
  expect(findingsOf(whole, { log: [] })).toEqual(['/log']);
  expect(findingsOf(whole, { docket: { ...docket, registerId: 'f'.repeat(32) } })).toEqual([
    '/docket/registerId',
    '/log',
    '/checkpoint',
  ]);
  expect(findingsOf(whole, { docket: { ...docket, timestamp: 'yesterday' } })).toEqual(['/log']);
  expect(findingsOf(whole, { checkpointKey: key })).toEqual(['/checkpoint']);
  expect(findingsOf(whole, { checkpointKey: { ...whole.checkpointKey, name: 'x/registers/y' } })).toContain(
    '/checkpoint',
  );
  expect(
    findingsOf(whole, { checkpointKey: { ...whole.checkpointKey, kind: NOTE_KINDS.cosignature } }),
  ).toContain('/checkpoint');
});

it('an envelope that another transaction carries proves nothing about its sender', () => {
  const copied = evidence({ metadata: { instanceId: '0190a5b2-7c3d-7e4f-8a1b-000000000000' } });
  expect(locationsOf(verifyDisclosure(writeDisclosure(copied), verifier).findings)).toEqual(['/payload']);
});
