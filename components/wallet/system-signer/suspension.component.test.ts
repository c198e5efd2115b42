import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { Operation, OperationPayload } from '#core/ledger/governance/operation.ts';
import { suspensionTransaction } from '#core/ledger/governance/suspension.ts';
import { verifyTransactionSignature } from '#core/ledger/transaction.ts';
import { openFixture, openReplica, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { type Answer, SignerStream } from '../testing/signer-stream.ts';

const hash = 'ab'.repeat(32);

type Suspension = Extract<Operation, { operationType: 'suspend-validator' }>;

function proposal(proposerDid: string, over: Partial<Suspension> = {}): OperationPayload {
  const common = {
    polRound: -1,
    validatorSetHash: hash,
    timestamp: '2026-11-21T10:00:00Z',
    signature: 'AA==',
  };
  const docket = { docketHash: hash, merkleRoot: hash, logRoot: hash };
  const operation: Suspension = {
    operationType: 'suspend-validator',
    proposerDid,
    proposedAt: '2026-11-21T10:00:00.0000000+00:00',
    validatorId: 'validator-9',
    evidence: {
      kind: 'double-sign',
      networkId: 'acme',
      type: 2,
      height: 3,
      round: 0,
      first: { ...common, docket },
      second: common,
    },
    ...over,
  };
  return { version: 2, operation, rosterHashBefore: hash, rosterHashAfter: hash };
}

describe('signing component, the proposal to suspend a validator', () => {
  let first: Replica & ReplicaOptions;

  beforeAll(async () => {
    first = await openFixture('wallet_suspension');
  });

  afterAll(async () => {
    await first.close();
  });

  /** An open stream with the key that it signs with. */
  async function opened(validatorId: string) {
    const stream = new SignerStream(first, validatorId);
    const answer = (await stream.open(validatorId)) as {
      value: { key: { publicKey: string; walletAddress: string } };
    };
    const { publicKey, walletAddress } = answer.value.key;
    const sign = (registerId: string, text: string): Promise<Answer> =>
      stream.send({ case: 'suspension', value: { registerId, payload: Buffer.from(text) } });
    return { stream, publicKey, did: memberDid(walletAddress), sign };
  }

  const rowsOf = (registerId: string) =>
    first.db.read
      .selectFrom('signing_audit')
      .selectAll()
      .where('register_id', '=', registerId)
      .orderBy('id')
      .execute();

  test('is signed as the transaction that is computed from it, with an audit row', async () => {
    const registerId = randomBytes(16).toString('hex');
    const { stream, publicKey, did, sign } = await opened('validator-0');
    const payload = proposal(did);
    const answer = await sign(registerId, canonicalJson(payload));
    const { txId, envelope } = suspensionTransaction(registerId, payload, publicKey);
    const signatureValue = encodeBase64(answer.value?.signature ?? new Uint8Array());
    const signature = { publicKey, signatureValue, algorithm: 'ED25519' } as const;
    const { payloadHash } = envelope;
    expect(verifyTransactionSignature(first.deps.verifier, { txId, payloadHash }, signature)).toBe(true);
    expect(await rowsOf(registerId)).toMatchObject([
      { transaction_type: 'Suspension', transaction_id: txId, decision: 'Signed' },
    ]);
    await stream.close();
  });

  test('is the only transaction that the key of a validator signs', async () => {
    const registerId = randomBytes(16).toString('hex');
    const { stream, did, sign } = await opened('validator-1');
    const { evidence: _evidence, ...bare } = proposal(did).operation as Suspension;
    const removal = { ...bare, operationType: 'remove-validator' };
    const missed = { ...bare, evidence: { kind: 'missed-slots', dockets: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } };
    const approval = { approverDid: did, signature: 'AA==', isApproval: true };
    const frame = proposal(did);
    const wrong = [
      '',
      'null',
      '{"version":2}',
      canonicalJson({ ...frame, operation: bare }),
      canonicalJson({ ...frame, operation: removal }),
      canonicalJson({ ...frame, operation: missed }),
      canonicalJson(proposal(did, { validatorId: 'validator-1' })),
      canonicalJson(proposal(memberDid('w1qqqq'))),
      canonicalJson(proposal(did, { approvalSignatures: [approval] })),
      canonicalJson({ ...frame, enactsProposalId: hash }),
      canonicalJson({ ...frame, operation: { ...frame.operation, padding: 'x'.repeat(40_000) } }),
      canonicalJson(frame).replace('{', '{"version":2,'),
    ];
    for (const text of wrong) {
      expect(await sign(registerId, text)).toMatchObject({ value: { code: 'INVALID_REQUEST' } });
    }
    expect(await sign('short', canonicalJson(frame))).toMatchObject({ value: { code: 'INVALID_REQUEST' } });
    expect(await rowsOf(registerId)).toEqual([]);
    await stream.close();
  });

  test('is signed up to the cap for a register, and only for the newest epoch', async () => {
    const registerId = randomBytes(16).toString('hex');
    const old = await opened('validator-2');
    const text = canonicalJson(proposal(old.did));
    for (let index = 0; index < 12; index += 1) {
      expect((await old.sign(registerId, text)).case).toBe('signed');
    }
    expect(await old.sign(registerId, text)).toMatchObject({ value: { code: 'RATE_LIMITED' } });
    expect((await rowsOf(registerId)).at(-1)).toMatchObject({ decision: 'Refused', reason: 'RATE_LIMITED' });
    expect((await old.sign(randomBytes(16).toString('hex'), text)).case).toBe('signed');
    const replica = await openReplica(first);
    const young = new SignerStream(replica, 'validator-2');
    await young.open('validator-2');
    const other = randomBytes(16).toString('hex');
    expect(await old.sign(other, text)).toMatchObject({ value: { code: 'SIGNER_FENCED' } });
    expect(await rowsOf(other)).toEqual([]);
    await young.close();
    await replica.close();
  });
});
