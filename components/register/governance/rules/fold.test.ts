import { describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { utf8 } from '#core/encoding/text.ts';
import { parseRecord } from '#core/ledger/record.ts';
import figures from '#core/ledger/vectors/genesis.json' with { type: 'json' };
import { testKey } from '../../testing/keys.ts';
import { transaction } from '../../testing/sealed.ts';
import { foldDocket, foldGenesis, type PlacedRecord } from './fold.ts';
import { projectionOf } from './project.ts';

const verifier = createVerifier(nodeEd25519());
const timestamp = '2026-11-21T12:00:00.0000000+00:00';
const payload = canonicalBytes(figures.controlRecord);
const genesis: PlacedRecord = { position: 0, record: parseRecord(utf8(figures.record)), payload };

function rulesOfGenesis() {
  const folded = foldGenesis({ docketNumber: 0, timestamp, records: [genesis] });
  if (folded === undefined) throw new Error('no genesis');
  return folded;
}

function placed(overrides: object, position = 0): PlacedRecord {
  const sealed = transaction({
    registerId: figures.controlRecord.registerId,
    payload: { nonsense: true },
    type: 'Control',
    blueprintId: 'register-governance-v1',
    actionId: 'add-member',
    ...overrides,
  });
  return { position, record: parseRecord(sealed.record), payload: sealed.payload };
}

describe('folding dockets into rules', () => {
  it('begins with the control record and its signer', () => {
    const folded = rulesOfGenesis();
    expect(folded.after.registerId).toBe(figures.controlRecord.registerId);
    expect(folded.after.systemKey.publicKey).toBe(genesis.record.signatures[0]?.publicKey);
    const projection = projectionOf(folded);
    expect(projection).toMatchObject({
      joined: [],
      left: [],
      policies: [
        { kind: 'policy', version: 1, txId: figures.txId },
        { kind: 'crypto', version: 1, txId: figures.txId },
      ],
      operations: [{ operationType: 'genesis' }],
    });
  });

  it('finds no rules in a payload that is not a control record', () => {
    for (const bytes of [utf8('{}'), utf8('not JSON'), utf8('{"a":1,"a":2}'), new Uint8Array([0xff])]) {
      const records = [{ ...genesis, payload: bytes }];
      expect(foldGenesis({ docketNumber: 0, timestamp, records })).toBeUndefined();
    }
    expect(foldGenesis({ docketNumber: 0, timestamp, records: [] })).toBeUndefined();
  });

  it('refuses a control transaction by its place in the docket, or skips it in old history', () => {
    const { after } = rulesOfGenesis();
    const records = [placed({ type: 'Action', blueprintId: 'loan' }), placed({}, 1)];
    const facts = { docketNumber: 1, timestamp, records };
    const refused = foldDocket(after, facts, verifier);
    expect(refused).toMatchObject([{ field: expect.stringMatching(/^transactions\[1\]/) }]);
    const lenient = foldDocket(after, facts, verifier, true);
    expect(lenient).toMatchObject({ after, steps: [] });
    expect('after' in lenient && projectionOf(lenient)).toBeUndefined();
  });

  it('accepts other control transactions signed by a known key', () => {
    const { after } = rulesOfGenesis();
    const [owner] = after.roster;
    const known = {
      ...after,
      roster: owner === undefined ? [] : [{ ...owner, publicKey: testKey(9).publicKey }],
    };
    const publication = placed({ key: testKey(9), blueprintId: 'loan', actionId: 'blueprint-publish' });
    const facts = { docketNumber: 1, timestamp, records: [publication] };
    expect(foldDocket(known, facts, verifier)).toMatchObject({ after: known });
    expect(foldDocket(after, facts, verifier)).toMatchObject([{ code: 'VAL_PERM_001' }]);
  });

  it('applies the crypto policy to every signature, Action or not', () => {
    const { after } = rulesOfGenesis();
    const cryptoPolicy = { ...after.cryptoPolicy, acceptedSignatureAlgorithms: ['NISTP256' as const] };
    const records = [placed({ type: 'Action', blueprintId: 'loan' })];
    const facts = { docketNumber: 1, timestamp, records };
    const strict = foldDocket({ ...after, cryptoPolicy }, facts, verifier);
    expect(strict).toMatchObject([{ code: 'VAL_POLICY_001', field: 'transactions[0].Signatures' }]);
    const permissive = { ...cryptoPolicy, enforcementMode: 'Permissive' as const };
    expect(foldDocket({ ...after, cryptoPolicy: permissive }, facts, verifier)).toHaveProperty('after');
  });
});
