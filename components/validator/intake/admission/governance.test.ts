import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex } from '#core/crypto/hash.ts';
import { createSigner, type Signer } from '#core/crypto/sign.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import {
  type Approval,
  approvalDigest,
  type Operation,
  type OperationPayload,
} from '#core/ledger/governance/operation.ts';
import { applyEffect } from '#core/ledger/governance/operations.ts';
import { rosterHash } from '#core/ledger/governance/rules.ts';
import { rulesJson } from '#core/ledger/governance/rules-json.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../chain/building/docket.ts';
import { judgeDocket } from '../../chain/building/judge.ts';
import { applyDocket, type RegisterState } from '../../chain/state/state.ts';
import { type TestKey, testKey } from '../../testing/keys.ts';
import { ownerKey, registerId, systemKey, userKey, validatorKey, World } from '../../testing/world.ts';
import { buildCandidate } from '../verification/judge.ts';
import { parseSubmission } from '../verification/submission.ts';

const adminKey = testKey(3);
const newcomer = testKey(8);
const didOf = (key: TestKey) => memberDid(key.address);
const ledgerKey = (key: TestKey) => ({ publicKey: key.publicKey, algorithm: 'ED25519' as const });

let world: World;
beforeEach(async () => {
  world = await new World().open();
  await world.begin();
});
afterEach(() => world.remove());

const rules = () => world.register.state.ledger;
const now = () => formatLedgerTimestamp(BigInt(Date.now()) * 1000n);

function addAdmin(key = adminKey, proposer = ownerKey): Operation {
  return {
    operationType: 'add-member',
    proposerDid: didOf(proposer),
    proposedAt: now(),
    targetDid: didOf(key),
    targetRole: 'Admin',
    targetKey: ledgerKey(key),
  };
}

function policyUpdate(policy: Record<string, unknown>): Operation {
  const version = rules().policy.version + 1;
  return {
    operationType: 'policy-update',
    proposerDid: didOf(ownerKey),
    proposedAt: now(),
    policy: { ...rules().policy, ...policy, version },
  };
}

function addValidator(validatorId: string, key: TestKey): Operation {
  const proof = key.sign(possessionBytes({ registerId, validatorId, publicKey: key.publicKey }));
  return {
    operationType: 'add-validator',
    proposerDid: didOf(ownerKey),
    proposedAt: now(),
    validatorEntry: { validatorId, ...ledgerKey(key), proofOfPossession: encodeBase64(proof) },
  };
}

function payloadOf(operation: Operation, approvers: readonly TestKey[] = []): OperationPayload {
  const { state } = world.register;
  const rosterHashBefore = rosterHash(registerId, state.ledger.roster);
  const context = { docketNumber: state.height, timestamp: now(), verifier: state.verifier };
  const effect = applyEffect(state.ledger, operation, context);
  const after = 'violations' in effect ? state.ledger : effect.rules;
  const approvalSignatures = approvers.map((key): Approval => {
    const facts = { registerId, approverDid: didOf(key), isApproval: true, operation, rosterHashBefore };
    const signature = encodeBase64(key.sign(decodeHex(approvalDigest(facts))));
    return { approverDid: didOf(key), signature, isApproval: true };
  });
  return {
    version: 2,
    operation: approvers.length === 0 ? operation : { ...operation, approvalSignatures },
    rosterHashBefore,
    rosterHashAfter: rosterHash(registerId, after.roster),
  };
}

const signed = (actionId: string, payload: unknown, key = ownerKey) =>
  world.sign({ ...governanceDraft(actionId, payload), key });

const submit = async (actionId: string, payload: unknown, key = ownerKey) => {
  const { status, body } = await world.submit(signed(actionId, payload, key).text);
  return { status, code: body['code'] };
};

async function decide(operation: Operation, ...approvers: readonly TestKey[]): Promise<void> {
  const { txId, text } = signed(operation.operationType, payloadOf(operation, approvers));
  expect(await world.submit(text)).toMatchObject({ status: 200 });
  await waitFor(() => world.ledger.sealed.has(txId));
}

/** A docket of the given submissions after the current state, as another member could propose it. */
function proposed(state: RegisterState, texts: readonly string[]) {
  const limits = { maxTransactionBytes: 524_288, requireBoundTxId: false };
  const transactions = texts.map((text) => ({
    ...buildCandidate(parseSubmission(text), limits),
    exclusivePredecessor: false,
    addedAtMs: 0,
  }));
  const nowMicros = BigInt(Date.now()) * 1000n;
  return buildDocket(state, transactions, { validatorAddress: validatorKey.address, nowMicros });
}

const codes = (state: RegisterState, ...texts: readonly string[]) =>
  judgeDocket(state, proposed(state, texts)).map(({ code }) => code);

/** A submission whose id is not derived from its envelope. */
function unboundSubmission(txId: string): string {
  const draft = JSON.parse(world.sign({ payload: { txId } }).text);
  const signature = userKey.sign(signingDigest(txId, draft.PayloadHash));
  draft.Signatures[0].SignatureValue = encodeBase64(signature);
  return JSON.stringify({ ...draft, TransactionId: txId });
}

/** A submission that another algorithm signs. */
function submissionBy(signer: Signer, n: number): string {
  const draft = JSON.parse(world.sign({ payload: { n } }).text);
  const publicKey = encodeBase64(signer.publicKey);
  const txId = sha256Hex(`${n}`);
  const signature = encodeBase64(signer.signDigest(signingDigest(txId, draft.PayloadHash)));
  const signatures = [{ PublicKey: publicKey, SignatureValue: signature, Algorithm: signer.algorithm }];
  return JSON.stringify({ ...draft, TransactionId: txId, Signatures: signatures });
}

describe('admission of control transactions', () => {
  it('changes the roster as authorised, from the next docket on', async () => {
    expect(await submit('add-member', payloadOf(addAdmin(newcomer, adminKey)), adminKey)).toEqual({
      status: 403,
      code: 'VAL_PERM_001',
    });
    await decide(addAdmin());
    expect(rules().roster.map(({ role }) => role)).toEqual(['Owner', 'Admin']);
    const next = addAdmin(newcomer);
    expect(await submit('add-member', payloadOf(next))).toEqual({ status: 403, code: 'VAL_PERM_008' });
    await decide(next, adminKey);
    expect(rules().roster).toHaveLength(3);
    expect(world.ledger.dockets).toHaveLength(3);
  });

  it('judges their own content before the chain', async () => {
    const draft = { ...governanceDraft('add-member', {}), previous: 'ab'.repeat(32) };
    const stranger = await world.submit(world.sign(draft).text);
    expect(stranger).toMatchObject({ status: 403, body: { code: 'VAL_PERM_001' } });
    const member = await world.submit(world.sign({ ...draft, key: ownerKey }).text);
    expect(member).toMatchObject({ status: 422, body: { code: 'VAL_CHAIN_001' } });
    expect(await submit('add-member', {})).toEqual({ status: 422, code: 'VAL_SCHEMA_001' });
    expect(await submit('control.unheard', {})).toEqual({ status: 422, code: 'VAL_SCHEMA_004' });
  });

  it('cannot turn a removed right back on', async () => {
    const { cryptoPolicy } = rules();
    const payload = { version: 2, registerId, cryptoPolicy: { ...cryptoPolicy, version: 2, devMode: true } };
    const answer = await submit('control.crypto.update', payload, systemKey);
    expect(answer).toEqual({ status: 422, code: 'VAL_POLICY_003' });
  });

  it('lets a validator register itself with its own key', async () => {
    const operation = addValidator('validator-1', newcomer);
    if (operation.operationType !== 'add-validator') throw new Error('unreachable');
    const payload = { version: 2, registerId, validatorEntry: operation.validatorEntry };
    expect(await submit('control.validator.register', payload, userKey)).toMatchObject({ status: 403 });
    expect(await submit('control.validator.register', payload, newcomer)).toMatchObject({ status: 200 });
    await waitFor(() => rules().validators.length === 2);
    expect(world.register.state.members).toHaveLength(1);
  });
});

describe('a member that is behind the register service', () => {
  it('answers with a retryable error instead of refusing by rules that may have changed', async () => {
    const promotion = signed('add-member', payloadOf(addAdmin(newcomer, adminKey)), adminKey);
    expect(await world.submit(promotion.text)).toMatchObject({ status: 403 });
    const { findRegister } = world.ledger;
    world.ledger.findRegister = async (id) => {
      const facts = await findRegister(id);
      return facts && { ...facts, height: facts.height + 1 };
    };
    const answer = await world.submit(promotion.text);
    expect(answer).toMatchObject({ status: 503, body: { code: 'REGISTER_BEHIND' }, retryAfterSeconds: 1 });
    world.ledger.findRegister = async () => {
      throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'away');
    };
    expect(await world.submit(promotion.text)).toMatchObject({ status: 503 });
    const orphan = world.sign({ previous: 'ab'.repeat(32) });
    expect(await world.submit(orphan.text)).toMatchObject({ status: 422 });
  });
});

describe('waiting transactions while the rules change', () => {
  it('are rejected with the reason when a competing change was sealed first', async () => {
    await world.engine.setMode(registerId, 'Paused');
    const replays = [7, 8].map((maxTransactionsPerDocket) => {
      const consensus = { ...rules().policy.consensus, maxTransactionsPerDocket };
      return signed('policy-update', payloadOf(policyUpdate({ consensus })));
    });
    for (const { text } of replays) expect(await world.submit(text)).toMatchObject({ status: 200 });
    await world.engine.setMode(registerId, 'Running');
    await world.sealed(2);
    await waitFor(() => world.register.tombstones.find(replays[1]?.txId ?? '') !== undefined);
    expect(world.register.tombstones.find(replays[1]?.txId ?? '')).toMatchObject({
      status: 'rejected',
      code: 'VAL_POLICY_004',
    });
    expect(world.register.state.rules.maxTransactionsPerDocket).toBe(7);
    expect(world.register.pool.size).toBe(0);
  });

  it('are dropped when a new policy excludes them, and later ones are refused at once', async () => {
    const { consensus } = rules().policy;
    await decide(policyUpdate({ consensus: { ...consensus, maxTransactionsPerDocket: 1 } }));
    await world.engine.setMode(registerId, 'Paused');
    const kept = world.sign({ payload: { n: 1 } });
    const [unbound, late] = ['ab', 'cd'].map((fill) => unboundSubmission(fill.repeat(32)));
    for (const text of [unbound, kept.text])
      expect(await world.submit(text ?? '')).toMatchObject({ status: 200 });
    const stricter = policyUpdate({ consensus: { ...consensus, requireBoundTxId: true } });
    expect(await submit('control.policy.update', payloadOf(stricter))).toMatchObject({ status: 200 });
    await world.engine.setMode(registerId, 'Running');
    await waitFor(() => world.ledger.sealed.has(kept.txId));
    expect(world.ledger.sealed.has('ab'.repeat(32))).toBe(false);
    expect(world.register.tombstones.find('ab'.repeat(32))).toMatchObject({ code: 'VAL_STRUCT_011' });
    expect(await world.submit(late ?? '')).toMatchObject({ status: 400, body: { code: 'VAL_STRUCT_011' } });
  });

  it('are refused for algorithms that the crypto policy in force excludes', async () => {
    const other = createSigner({ algorithm: 'NISTP256', privateKey: new Uint8Array(32).fill(5) });
    expect(await world.submit(submissionBy(other, 1))).toMatchObject({ status: 200 });
    await world.sealed(2);
    const { state } = world.register;
    const waiting = submissionBy(other, 2);
    expect(codes(state, waiting)).toEqual([]);
    const operation: Operation = {
      operationType: 'crypto-policy-update',
      proposerDid: didOf(ownerKey),
      proposedAt: now(),
      cryptoPolicy: { ...rules().cryptoPolicy, version: 2, acceptedSignatureAlgorithms: ['ED25519'] },
    };
    await decide(operation);
    expect(await world.submit(waiting)).toMatchObject({ status: 422, body: { code: 'VAL_POLICY_001' } });
    expect(codes(world.register.state, waiting)).toEqual(['VAL_POLICY_001']);
  });

  it('are bounded per sender by the current policy', async () => {
    const { consensus } = rules().policy;
    await decide(policyUpdate({ consensus: { ...consensus, maxPendingPerSender: 1 } }));
    await world.engine.setMode(registerId, 'Paused');
    expect(await world.submit(world.sign({ payload: { n: 1 } }).text)).toMatchObject({ status: 200 });
    expect(await world.submit(world.sign({ payload: { n: 2 } }).text)).toMatchObject({ status: 429 });
  });
});

describe('a proposed docket', () => {
  it('is judged by the cumulative effect of its control transactions', () => {
    const { state } = world.register;
    const first = signed('add-member', payloadOf(addAdmin()));
    const twice = signed('add-member', payloadOf(addAdmin(newcomer)));
    const stranger = signed('add-member', payloadOf(addAdmin()), userKey);
    expect(codes(state, first.text)).toEqual([]);
    expect(codes(state, first.text, twice.text)).toEqual(['VAL_PERM_009']);
    expect(codes(state, stranger.text)).toEqual(['VAL_PERM_001']);
    expect(codes(state, world.genesis().text)).toContain('VAL_PERM_002');
    expect(() => applyDocket(state, proposed(state, [first.text, twice.text]))).toThrow(
      expect.objectContaining({ code: 'DOCKET_NOT_JUDGED' }),
    );
  });

  it('changes members, quorum and set hash exactly at the next height', () => {
    const { state } = world.register;
    const docket = proposed(state, [
      signed('add-validator', payloadOf(addValidator('validator-1', newcomer))).text,
    ]);
    expect(judgeDocket(state, docket)).toEqual([]);
    expect(docket.header.validatorSetHash).toBe(state.membersHash);
    const after = applyDocket(state, docket);
    expect(after.members.map(({ validatorId }) => validatorId)).toEqual(['validator-0', 'validator-1']);
    expect(after.membersHash).not.toBe(state.membersHash);
    const plain = applyDocket(after, proposed(after, [world.sign().text]));
    expect(plain.ledger).toBe(after.ledger);
    expect(plain.membersHash).toBe(after.membersHash);
  });

  it('changes at most one member of a small set', () => {
    const { state } = world.register;
    const texts = [newcomer, adminKey].map(
      (key, index) => signed('add-validator', payloadOf(addValidator(`validator-${index + 1}`, key))).text,
    );
    expect(codes(state, ...texts)).toEqual(['VAL_PERM_016']);
  });
});

describe('after a restart', () => {
  it('the rules are the same, from the register service and from dockets that it had not stored', async () => {
    await decide(addAdmin());
    let isAbsent = true;
    world.ledger.before = (call) => {
      if (call === 'write' && isAbsent) throw new Error('the register service is away');
    };
    const answer = await submit('add-member', payloadOf(addAdmin(newcomer), [adminKey]));
    expect(answer).toMatchObject({ status: 200 });
    await waitFor(() => rules().roster.length === 3);
    const before = rulesJson(rules());
    await world.close();
    isAbsent = false;
    await world.open();
    await waitFor(() => world.engine.registers.get(registerId) !== undefined);
    await world.sealed(3);
    expect(rulesJson(rules())).toBe(before);
    await world.close();
    await world.open();
    await waitFor(() => world.engine.registers.get(registerId) !== undefined);
    expect(rulesJson(rules())).toBe(before);
    expect(await submit('add-member', payloadOf(addAdmin(userKey)))).toMatchObject({ code: 'VAL_PERM_008' });
  });
});
