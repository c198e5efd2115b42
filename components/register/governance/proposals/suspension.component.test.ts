import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { CONSENSUS_TYPES, signBytes } from '#core/ledger/consensus.ts';
import { memberDid } from '#core/ledger/did.ts';
import {
  type Accusation,
  buildSuspension,
  suspensionTransaction,
} from '#core/ledger/governance/suspension.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { TestMember } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const hash = 'ab'.repeat(32);

describe('a validator that signs two messages for one round', () => {
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('suspension', { members: 4 });
  });
  afterAll(() => register.stop());
  beforeEach(async () => {
    registerId = await register.createRegister();
  });

  const member = (index: number): TestMember => {
    const found = register.validators.members[index];
    if (found === undefined) throw new Error(`there is no validator ${index}`);
    return found;
  };
  const get = (path: string) => register.call('GET', path, { token: 'admin' });

  /** Two votes of a validator, one for a docket and one for nil. */
  function twoVotes({ key }: TestMember, docketHash = hash): Accusation['evidence'] {
    const place = { networkId: testInstallation, height: 1, round: 0 } as const;
    const signed = (docket: { docketHash: string; merkleRoot: string; logRoot: string } | undefined) => {
      const common = { polRound: -1, validatorSetHash: hash, timestamp: '2026-11-21T10:00:00Z' };
      const type = CONSENSUS_TYPES.prevote;
      const bytes = signBytes({ ...place, ...common, type, registerId, docket });
      return { ...common, ...(docket && { docket }), signature: encodeBase64(key.signer.sign(bytes)) };
    };
    const first = signed({ docketHash, merkleRoot: hash, logRoot: hash });
    return { kind: 'double-sign', type: 2, ...place, first, second: signed(undefined) };
  }

  /** The proposal of a validator, signed with its key and submitted to the validators. */
  async function proposeSuspension(by: TestMember, suspect: TestMember, evidence: Accusation['evidence']) {
    const state = await register.state(registerId);
    if (state.rules === undefined) throw new Error('no rules');
    const timestamp = formatLedgerTimestamp(BigInt(Date.now()) * 1000n);
    const { validatorId } = suspect;
    const { publicKey, walletAddress: proposerAddress } = by.key;
    const context = { docketNumber: state.height, timestamp, verifier: createVerifier(nodeEd25519()) };
    const payload = buildSuspension(state.rules, { validatorId, evidence, proposerAddress }, context);
    const { envelope, txId, payloadText } = suspensionTransaction(registerId, payload, publicKey);
    const signature = by.key.signer.signDigest(signingDigest(txId, envelope.payloadHash));
    const submission = {
      TransactionId: txId,
      RegisterId: registerId,
      BlueprintId: envelope.blueprintId,
      ActionId: envelope.actionId,
      PayloadHash: envelope.payloadHash,
      Signatures: [{ PublicKey: publicKey, SignatureValue: encodeBase64(signature), Algorithm: 'ED25519' }],
      CreatedAt: envelope.createdAt,
      Metadata: envelope.metadata,
      Payload: JSON.parse(payloadText),
    };
    const at = { validatorId: member(0).validatorId, endpoint: 'anywhere:1' };
    const answer = await register.validators.submit(at, Buffer.from(JSON.stringify(submission)));
    return { status: answer.status, text: JSON.stringify(answer.body), txId };
  }

  test('is proposed once for suspension by another validator, with both messages, and suspended by the roster', async () => {
    const [witness, other, liar] = [member(0), member(1), member(3)];
    const opened = await proposeSuspension(witness, liar, twoVotes(liar));
    expect(opened.status).toBe(200);
    await register.seal(registerId);
    const { body } = await get(`/api/registers/${registerId}/governance/proposals`);
    expect(body.items).toMatchObject([
      {
        proposalId: opened.txId,
        status: 'Pending',
        operationType: 'suspend-validator',
        proposerDid: memberDid(witness.key.walletAddress),
        votesReceived: 0,
        votesRequired: 1,
      },
    ]);
    const shown = (await get(`/api/registers/${registerId}/governance/proposals/${opened.txId}`)).body;
    expect(shown.operation.evidence).toEqual(JSON.parse(JSON.stringify(twoVotes(liar))));
    const again = await proposeSuspension(other, liar, twoVotes(liar, 'cd'.repeat(32)));
    expect(again.status).toBe(422);
    expect(again.text).toContain('VAL_PERM_018');
    const statuses = async () => {
      const { rules } = await register.state(registerId);
      return rules?.validators.map(({ status }) => status);
    };
    expect(await statuses()).toEqual(['Active', 'Active', 'Active', 'Active']);
    const path = `/api/registers/${registerId}/governance/proposals/${opened.txId}/approvals`;
    const vote = await register.call('POST', path, { token: 'admin', body: { decision: 'approve' } });
    expect(vote.status).toBe(202);
    await register.seal(registerId);
    await waitFor(() => register.validators.pooled(registerId).length > 0, { what: 'the enactment' });
    await register.seal(registerId);
    expect(await statuses()).toEqual(['Active', 'Active', 'Active', 'Suspended']);
    const history = (await get(`/api/registers/${registerId}/governance/history`)).body;
    expect(history.items[0]).toMatchObject({ operationType: 'suspend-validator', event: 'enacted' });
  });

  test('a proposal without proof, or by a signer that is not a validator, is refused', async () => {
    const [witness, liar] = [member(0), member(3)];
    const refused = async (by: TestMember, evidence: Accusation['evidence'], code: string) => {
      const { status, text } = await proposeSuspension(by, liar, evidence);
      expect([status >= 400, text]).toEqual([true, expect.stringContaining(code)]);
    };
    const proven = twoVotes(liar);
    await refused(witness, { ...proven, second: proven.first }, 'VAL_PERM_019');
    await refused(witness, { ...proven, round: 1 }, 'VAL_PERM_019');
    await refused(witness, { ...proven, height: 2 }, 'VAL_PERM_019');
    await refused(witness, twoVotes(member(2)), 'VAL_PERM_019');
    await refused(liar, proven, 'VAL_PERM_003');
    await refused({ validatorId: 'validator-9', key: testKey(77) }, proven, 'VAL_PERM_001');
    expect(register.validators.pooled(registerId)).toEqual([]);
  });
});
