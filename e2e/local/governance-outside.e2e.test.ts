import { sign } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { memberDid } from '#core/ledger/did.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import { type Approval, approvalDigest, type Operation } from '#core/ledger/governance/operation.ts';
import { type RosterEntry, rosterHash } from '#core/ledger/governance/rules.ts';
import { boundTxId, payloadHash, signingDigest } from '#core/ledger/transaction.ts';
import type { Answer } from '../harness/api.ts';
import {
  createOrganization,
  createPerson,
  type Governed,
  governed,
  type Person,
} from '../harness/governance.ts';
import { createRegister, waitConfirmed, waitOnline } from '../harness/journey.ts';
import { createOutsideKey, type OutsideKey } from '../harness/outside.ts';
import { installation } from '../harness/shared-system.ts';
import { inParallel, until } from '../harness/wait.ts';

const here = installation();
const at = (shiftMs = 0): string => formatLedgerTimestamp(BigInt(Date.now() + shiftMs) * 1000n);
const didOf = ({ address }: OutsideKey) => memberDid(address);
const codeOf = ({ status, body }: Answer) => [status, (body as { code?: string }).code];

const ending = z.object({ status: z.string(), rejection: z.object({ code: z.string() }).optional() });

interface Payload {
  readonly version: 2;
  readonly operation: Operation;
  readonly rosterHashBefore: string;
  readonly rosterHashAfter: string;
}

/** A governance transaction as a client without any service builds it. */
function transactionOf(key: OutsideKey, registerId: string, actionId: string, payload: object) {
  const { blueprintId, metadata } = governanceDraft(actionId, payload);
  const createdAt = at();
  const hash = payloadHash(payload);
  const envelope = { registerId, blueprintId, actionId, metadata, payloadHash: hash, createdAt };
  const TransactionId = boundTxId({ ...envelope, type: 'Control' }, [key.publicKey]);
  const signature = sign(null, signingDigest(TransactionId, hash), key.privateKey);
  return {
    TransactionId,
    RegisterId: registerId,
    BlueprintId: blueprintId,
    ActionId: actionId,
    Payload: payload,
    PayloadHash: hash,
    Signatures: [
      { PublicKey: key.publicKey, SignatureValue: signature.toString('base64'), Algorithm: 'ED25519' },
    ],
    CreatedAt: createdAt,
    Metadata: metadata,
  };
}

describe('governance with keys that no service holds', () => {
  let owner: Person;
  let register: Governed;
  const [ada, ben, eve] = [createOutsideKey(), createOutsideKey(), createOutsideKey()];

  const submit = (json: object): Promise<Answer> =>
    here.api.send('POST', '/api/v1/transactions/validate', { token: owner.token, json });
  const act = (key: OutsideKey, actionId: string, payload: object): Promise<Answer> =>
    submit(transactionOf(key, register.registerId, actionId, payload));
  const sealed = async (key: OutsideKey, actionId: string, payload: object): Promise<string> => {
    const json = transactionOf(key, register.registerId, actionId, payload);
    expect(await submit(json)).toMatchObject({ status: 200, body: { added: true } });
    await waitConfirmed(here.api, owner.token, register.registerId, json.TransactionId);
    return json.TransactionId;
  };
  const addOf = (key: OutsideKey, role: string) => ({
    operationType: 'add-member',
    targetDid: didOf(key),
    targetRole: role,
    targetKey: { publicKey: key.publicKey, algorithm: 'ED25519' },
  });
  const approvalBy = (key: OutsideKey, operation: Operation, before: string): Approval => {
    const facts = { registerId: register.registerId, approverDid: didOf(key), isApproval: true };
    const digest = approvalDigest({ ...facts, operation, rosterHashBefore: before });
    const signature = sign(null, Buffer.from(digest, 'hex'), key.privateKey).toString('base64');
    return { approverDid: didOf(key), isApproval: true, signature };
  };
  /** An operation that removes a member, which every client can compute from the roster. */
  const removal = async (
    proposer: OutsideKey,
    target: string,
    more: { readonly proposedAt?: string; readonly expiresAt?: string } = {},
  ): Promise<Payload> => {
    const { members } = await register.roster(owner);
    const roster = members.map(({ did, ...rest }) => ({ ...rest, subject: did }));
    const left = roster.filter(({ subject }) => subject !== target);
    const operation: Operation = {
      operationType: 'remove-member',
      proposerDid: didOf(proposer),
      proposedAt: at(),
      targetDid: target,
      ...more,
    };
    const hash = (entries: readonly RosterEntry[]) => rosterHash(register.registerId, entries);
    return { version: 2, operation, rosterHashBefore: hash(roster), rosterHashAfter: hash(left) };
  };
  const approved = (payload: Payload, ...approvers: readonly OutsideKey[]): Payload => {
    const { operation, rosterHashBefore } = payload;
    const approvalSignatures = approvers.map((key) => approvalBy(key, operation, rosterHashBefore));
    return { ...payload, operation: { ...operation, approvalSignatures } };
  };

  beforeAll(async () => {
    const organization = await createOrganization(here.api, here.token(), 'bridge');
    const person = { name: 'owner', role: 'Administrator' } as const;
    owner = await createPerson(here.api, here.token(), organization, person);
    const registerId = await createRegister(here.api, owner.token, 'Bridge', owner.wallet);
    await waitOnline(here.api, owner.token, registerId);
    register = governed(here.api, registerId);
    await register.decide(owner, addOf(ada, 'Admin'));
    const id = await register.decide(owner, addOf(ben, 'Admin'));
    await sealed(ada, 'control.governance.approve', { version: 2, proposalId: id, decision: 'approve' });
    await register.waitStatus(owner, id ?? '', 'Recorded');
  });

  test('two members with keys of their own decide without any wallet', async () => {
    const id = await register.decide(owner, { ...addOf(eve, 'Auditor'), mode: 'proposal' });
    await sealed(ben, 'control.governance.approve', { version: 2, proposalId: id, decision: 'approve' });
    await register.waitStatus(owner, id ?? '', 'Recorded');
    await sealed(ada, 'remove-member', approved(await removal(ada, didOf(eve)), ben));
    expect(await register.roles(owner)).toEqual({
      [owner.did]: 'Owner',
      [didOf(ada)]: 'Admin',
      [didOf(ben)]: 'Admin',
    });
  });

  test('an approval is for one operation on one register, once', async () => {
    const sound = approved(await removal(ada, owner.did), ben);
    expect(codeOf(await act(ada, 'remove-member', sound))).toEqual([422, 'VAL_PERM_005']);
    const payload = await removal(ada, didOf(ben));
    const other = approved({ ...payload, operation: { ...payload.operation, justification: 'x' } }, ada);
    const { approvalSignatures } = other.operation;
    const moved = { ...payload, operation: { ...payload.operation, approvalSignatures } } as Payload;
    expect(codeOf(await act(ada, 'remove-member', moved))).toEqual([403, 'VAL_PERM_008']);
    const forOwner = { ...payload, operation: { ...payload.operation, proposerDid: owner.did } };
    expect(codeOf(await act(ada, 'remove-member', forOwner))).toEqual([403, 'VAL_PERM_003']);
    const elsewhere = await createRegister(here.api, owner.token, 'Twin', owner.wallet);
    await waitOnline(here.api, owner.token, elsewhere);
    const twin = governed(here.api, elsewhere);
    await twin.decide(owner, addOf(ada, 'Admin'));
    const replayed = transactionOf(ada, register.registerId, 'remove-member', payload);
    const answer = await submit({ ...replayed, RegisterId: elsewhere });
    expect(codeOf(answer)).toEqual([422, 'VAL_PERM_009']);
    const labelled = transactionOf(ada, elsewhere, 'remove-member', payload);
    expect(codeOf(await submit(labelled))).toEqual([422, 'VAL_PERM_009']);
  });

  test('an enacted operation is not enacted again when the roster is the same as before', async () => {
    const add = async () => {
      const id = await register.decide(owner, { ...addOf(eve, 'Auditor'), mode: 'proposal' });
      await sealed(ada, 'control.governance.approve', { version: 2, proposalId: id, decision: 'approve' });
      await register.waitStatus(owner, id ?? '', 'Recorded');
    };
    await add();
    const payload = approved(await removal(ada, didOf(eve)), ben);
    await sealed(ada, 'remove-member', payload);
    await add();
    expect(codeOf(await act(ada, 'remove-member', payload))).toEqual([422, 'VAL_PERM_014']);
    expect(await register.roles(owner)).toMatchObject({ [didOf(eve)]: 'Auditor' });
  });

  test('time is judged by dockets: neither early nor late', async () => {
    const target = didOf(eve);
    const untimely = [
      { proposedAt: at(600_000) },
      { proposedAt: at(-8 * 86_400_000) },
      { expiresAt: at(-1_000) },
    ];
    for (const more of untimely) {
      const payload = approved(await removal(ada, target, more), ben);
      expect(codeOf(await act(ada, 'remove-member', payload)), JSON.stringify(more)).toEqual([
        422,
        'VAL_PERM_013',
      ]);
    }
  });

  test('payloads with missing, additional or changed members are refused', async () => {
    const sound = approved(await removal(ada, didOf(eve)), ben);
    const { operation, ...rest } = sound;
    const odd: readonly (readonly [number, string, object])[] = [
      [422, 'remove-member', { ...sound, extra: true }],
      [422, 'remove-member', rest],
      [422, 'remove-member', { ...sound, version: 1 }],
      [422, 'remove-member', { ...sound, operation: { ...operation, targetRole: 'Admin' } }],
      [422, 'transfer-ownership', sound],
      [422, 'remove-member', { ...sound, rosterHashAfter: sound.rosterHashBefore }],
      [422, 'control.everything', sound],
      [422, 'toString', sound],
      [
        403,
        'control.register.updatemetadata',
        { version: 2, registerId: register.registerId, title: 'Mine' },
      ],
    ];
    const before = (await register.roster(owner)).controlTransactionCount;
    for (const [status, actionId, payload] of odd) {
      expect((await act(ada, actionId, payload)).status, `${actionId} ${JSON.stringify(payload)}`).toBe(
        status,
      );
    }
    expect((await register.roster(owner)).controlTransactionCount).toBe(before);
  });

  test('keys outside the roster send no control transaction', async () => {
    const nobody = createOutsideKey();
    const payload = await removal(nobody, didOf(eve));
    expect(codeOf(await act(nobody, 'remove-member', payload))).toEqual([403, 'VAL_PERM_001']);
    const enact = { version: 2, enactsProposalId: 'ab'.repeat(32) };
    expect(codeOf(await act(nobody, 'control.governance.enact', enact))).toEqual([403, 'VAL_PERM_001']);
    expect(codeOf(await act(eve, 'control.governance.enact', enact))).toEqual([403, 'VAL_PERM_003']);
    expect(codeOf(await act(ada, 'control.governance.enact', enact))).toEqual([422, 'VAL_PERM_012']);
  });

  test('a proposal with an end of its own expires at that time', async () => {
    const request = { ...addOf(createOutsideKey(), 'Auditor'), expiresAt: at(2_500), mode: 'proposal' };
    const id = (await register.decide(owner, request)) ?? '';
    expect((await register.ballot(owner, id)).status).toBe('Pending');
    await register.waitStatus(owner, id, 'Expired');
    expect((await register.ballot(owner, id)).dataToSign).toEqual([]);
    const late = { version: 2, proposalId: id, decision: 'approve' };
    expect(codeOf(await act(ada, 'control.governance.approve', late))).toEqual([422, 'VAL_PERM_013']);
    const answer = await register.vote(owner, id, { decision: 'approve' });
    expect([409, 422]).toContain(answer.status);
  });

  test('the same request under one Idempotency-Key is one proposal', async () => {
    const request = { ...addOf(createOutsideKey(), 'Designer'), mode: 'proposal' };
    const propose = (json: object) =>
      here.api.send('POST', `/api/registers/${register.registerId}/governance/propose`, {
        token: owner.token,
        json,
        headers: { 'idempotency-key': `proposal-${didOf(ada)}` },
      });
    const first = await propose(request);
    expect(first.status).toBe(202);
    expect((await propose(request)).body).toEqual(first.body);
    expect(codeOf(await propose({ ...request, targetRole: 'Auditor' }))).toEqual([
      409,
      'IDEMPOTENCY_KEY_REUSED',
    ]);
  });

  test('of concurrent changes each is sealed or refused with a reason, and none waits for ever', async () => {
    const registerId = await createRegister(here.api, owner.token, 'Crowded', owner.wallet);
    await waitOnline(here.api, owner.token, registerId);
    const crowded = governed(here.api, registerId);
    const keys = Array.from({ length: 8 }, () => createOutsideKey());
    const answers = await inParallel(keys, 8, (key) => crowded.propose(owner, addOf(key, 'Auditor')));
    const accepted = answers.filter(({ status }) => status === 202);
    expect(accepted.length).toBeGreaterThan(0);
    for (const answer of answers.filter(({ status }) => status !== 202)) {
      expect(codeOf(answer)).toEqual([422, 'VAL_PERM_009']);
    }
    const ends = await inParallel(accepted, 4, ({ body }) =>
      until('an end', 20_000, async () => {
        const path = `/api/registers/${registerId}/transactions/${(body as { txId: string }).txId}`;
        const { status, rejection } = ending.parse(
          (await here.api.send('GET', path, { token: owner.token })).body,
        );
        return status === 'pending' ? undefined : (rejection?.code ?? status);
      }),
    );
    const sealedOnes = ends.filter((end) => end === 'confirmed');
    expect(new Set(ends.filter((end) => end !== 'confirmed'))).toEqual(
      new Set(sealedOnes.length === ends.length ? [] : ['VAL_PERM_009']),
    );
    const { members, rosterVersion } = await crowded.roster(owner);
    expect([members.length, rosterVersion]).toEqual([1 + sealedOnes.length, 1 + sealedOnes.length]);
  });

  test('malformed bodies are refused in the form of the specification', async () => {
    const base = `/api/registers/${register.registerId}`;
    const posts = [
      `${base}/governance/propose`,
      `${base}/governance/proposals/${'ab'.repeat(32)}/approvals`,
      `${base}/policy/update`,
      `${base}/governance/crypto-policy`,
      '/api/validators/register',
    ];
    const texts = [
      '{',
      '[]',
      '"x"',
      'null',
      '{"transaction":{}}',
      '{"approvals":[1]}',
      '{"policy":[]}',
      '{"a":1,"a":2}',
    ];
    for (const path of posts) {
      for (const text of texts) {
        const answer = await here.api.send('POST', path, { token: owner.token, text });
        expect(answer.status, `${path} ${text}`).toBe(400);
        expect(answer.body, `${path} ${text}`).toMatchObject({
          code: expect.any(String),
          error: expect.any(String),
          path,
        });
      }
      expect((await here.api.send('POST', path, { json: {} })).status, path).toBe(401);
    }
    const reads = [
      '/governance/roster',
      '/governance/history',
      '/governance/proposals',
      '/policy',
      '/policy/history',
      '/crypto-policy',
      '/crypto-policy/history',
      '/validators/approved',
      '/validators/operational',
    ];
    for (const path of reads) {
      expect((await here.api.send('GET', base + path)).status, path).toBe(401);
      const unknown = await here.api.send('GET', `/api/registers/${'0'.repeat(32)}${path}`, {
        token: owner.token,
      });
      expect(unknown.status, path).toBe(404);
    }
  });
});
