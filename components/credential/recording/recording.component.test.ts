import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { boundTxId, payloadHash, verifyTransactionSignature } from '#core/ledger/transaction.ts';
import { refusal } from '../errors.ts';
import type { SignedTransaction } from '../ledger/registers.ts';
import { changeStatus } from '../status/change.ts';
import { caller, type Fixture, issuerUrl, openFixture } from '../testing/fixture.ts';
import { type Held, Presenter } from '../testing/presenter.ts';
import { recordChanges } from './job.ts';

const registerId = '0123456789abcdef0123456789abcdef';
let fixture: Fixture;
let presenter: Presenter;
let held: Held;

beforeAll(async () => {
  fixture = await openFixture('credential_recording');
  presenter = new Presenter(fixture);
  fixture.registers.known.add(registerId);
});

beforeEach(async () => {
  await fixture.db.transact((tx) => tx.deleteFrom('unrecorded_changes').execute());
  held = await presenter.hold({ trustAnchor: 'register', registerId });
  const { registers, outage } = fixture;
  registers.isAway = false;
  registers.refusedWith = undefined;
  registers.submitted.clear();
  registers.submissions = 0;
  delete outage.sign;
});

afterAll(() => fixture.close());

const change = async (verb: string, status = 200) => {
  const answer = await fixture.app.inject({
    method: 'POST',
    url: `/api/v1/credentials/${held.credentialId}/${verb}`,
    headers: { authorization: 'Bearer service' },
    payload: { reason: 'private words' },
  });
  expect(answer.statusCode).toBe(status);
  return answer.json();
};
const run = () =>
  recordChanges({ ...fixture.deps, registers: fixture.registers }).run(new AbortController().signal);
const waiting = async () =>
  (await fixture.db.read.selectFrom('unrecorded_changes').selectAll().execute()).filter(
    ({ credential_id: id }) => id === held.credentialId,
  ).length;
const submitted = () => [...fixture.registers.submitted.values()];

function assertSound(transaction: SignedTransaction | undefined) {
  if (transaction === undefined) throw new Error('nothing was submitted');
  const { id, payload, signature, sender, ...envelope } = transaction;
  const { publicKey, signatureValue } = signature;
  expect(envelope.payloadHash).toBe(payloadHash(JSON.parse(payload)));
  expect(boundTxId({ ...envelope, type: 'CredentialStatusChange' }, [publicKey])).toBe(id);
  const signed = { txId: id, payloadHash: envelope.payloadHash };
  const verifier = createVerifier(nodeEd25519());
  const given = { publicKey, signatureValue, algorithm: 'NISTP256' } as const;
  expect(verifyTransactionSignature(verifier, signed, given)).toBe(true);
  expect(sender).toBe(fixture.organization.walletAddress);
  return JSON.parse(payload);
}

describe('a change of a status whose offer names a register', () => {
  test('is a transaction of the organisation, in the order of the changes, each once', async () => {
    const suspended = await change('suspend');
    const reinstated = await change('reinstate');
    expect([suspended.transactionId, reinstated.transactionId]).toEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ]);
    await run();
    expect(submitted().map(({ id }) => id)).toEqual([suspended.transactionId]);
    expect(assertSound(submitted()[0])).toEqual({
      credentialId: held.credentialId,
      status: 'Suspended',
      statusList: {
        uri: `${issuerUrl}/api/v1/credentials/ietf-status-lists/${suspended.listId}`,
        idx: suspended.index,
        value: 2,
      },
      changedAt: suspended.changedAt,
    });
    // The next one waits until the first is sealed.
    fixture.clock.advance(2_000);
    await run();
    expect([fixture.registers.submissions, await waiting()]).toEqual([1, 2]);
    fixture.registers.sealed.add(suspended.transactionId);
    for (let times = 0; times < 2; times += 1) {
      fixture.clock.advance(2_000);
      await run();
    }
    expect(submitted().map(({ id }) => id)).toEqual([suspended.transactionId, reinstated.transactionId]);
    expect(assertSound(submitted()[1])).toMatchObject({ status: 'Active', statusList: { value: 0 } });
    fixture.registers.sealed.add(reinstated.transactionId);
    fixture.clock.advance(2_000);
    await run();
    expect(await waiting()).toBe(0);
  });

  test('is recorded once the register service is there again, as the transaction that was answered', async () => {
    fixture.registers.isAway = true;
    const { transactionId } = await change('revoke');
    await run();
    fixture.clock.advance(1_000);
    await run();
    expect(await waiting()).toBe(1);
    fixture.registers.isAway = false;
    fixture.clock.advance(4_000);
    await run();
    expect(submitted().map(({ id }) => id)).toEqual([transactionId]);
    // Another replica, and the same one again, find it pending.
    await Promise.all([run(), run()]);
    expect(fixture.registers.submissions).toBe(1);
  });

  test('is made while the wallet service is away, and signed later', async () => {
    fixture.outage.sign = refusal('WALLETS_UNAVAILABLE');
    expect(await change('suspend')).toMatchObject({ status: 'Suspended', transactionId: null });
    await run();
    expect(await waiting()).toBe(1);
    delete fixture.outage.sign;
    fixture.clock.advance(2_000);
    await run();
    expect(assertSound(submitted()[0])).toMatchObject({ status: 'Suspended' });
  });

  test('is signed anew when validators refuse it', async () => {
    const { transactionId } = await change('revoke');
    fixture.registers.refusedWith = 'VAL_TIME_002';
    await run();
    expect(await waiting()).toBe(1);
    fixture.registers.refusedWith = undefined;
    fixture.clock.advance(3_000);
    await run();
    expect(submitted()).toHaveLength(1);
    expect(submitted()[0]?.id).not.toBe(transactionId);
    assertSound(submitted()[0]);
  });

  test('is one transaction also where a replica is so slow that another one takes its changes', async () => {
    const another = await presenter.hold({ trustAnchor: 'register', registerId });
    fixture.outage.sign = refusal('WALLETS_UNAVAILABLE');
    await change('suspend');
    held = another;
    await change('suspend');
    delete fixture.outage.sign;
    const { registers, clock, deps } = fixture;
    let isFirst = true;
    const slow = {
      exists: (id: string) => registers.exists(id),
      submit: (transaction: SignedTransaction) => registers.submit(transaction),
      stateOf: async (id: string, transactionId: string) => {
        if (isFirst) {
          isFirst = false;
          clock.advance(61_000);
          await run();
          clock.advance(1_000);
        }
        return registers.stateOf(id, transactionId);
      },
    };
    await recordChanges({ ...deps, registers: slow }).run(new AbortController().signal);
    expect(submitted()).toHaveLength(2);
  });

  test('is signed for those who may make it alone', async () => {
    let signatures = 0;
    const issuers: typeof fixture.deps.issuers = {
      chainOf: (issuer, use) => fixture.deps.issuers.chainOf(issuer, use),
      sign: (address, digest) => {
        signatures += 1;
        return fixture.deps.issuers.sign(address, digest);
      },
    };
    const revoked = { credentialId: held.credentialId, to: 'Revoked', reason: 'test' } as const;
    const stranger = caller({ organizationId: 'other', roles: ['Administrator'] });
    await expect(changeStatus({ ...fixture.deps, issuers }, stranger, revoked)).rejects.toMatchObject({
      code: 'CREDENTIAL_NOT_FOUND',
    });
    expect(signatures).toBe(0);
    const { organizationId } = fixture.organization;
    const person = caller({ organizationId, roles: ['Administrator'] });
    await changeStatus({ ...fixture.deps, issuers }, person, revoked);
    expect(signatures).toBe(1);
  });

  test('that is refused to the caller records nothing', async () => {
    await change('revoke');
    const before = await waiting();
    await change('reinstate', 409);
    expect(await waiting()).toBe(before);
  });
});

test('a change of a credential without a register names no transaction', async () => {
  held = await presenter.hold();
  expect(await change('suspend')).toMatchObject({ transactionId: null });
  expect(await waiting()).toBe(0);
});

test('an offer names a register that exists, for the anchor register alone', async () => {
  const offer = async (members: object) => {
    const json = {
      issuerWalletAddress: fixture.organization.walletAddress,
      tenantId: fixture.organization.organizationId,
      credentialType: 'Site permit',
      claims: { permitNumber: 'P-17' },
      trustAnchor: 'register',
      ...members,
    };
    const headers = { authorization: 'Bearer service' };
    const answer = await fixture.app.inject({
      method: 'POST',
      url: '/api/v1/offers',
      headers,
      payload: json,
    });
    return answer.json().code ?? answer.statusCode;
  };
  expect(await offer({ registerId })).toBe(201);
  expect(await offer({ registerId: 'f'.repeat(32) })).toBe('REGISTER_UNKNOWN');
  expect(await offer({ registerId, trustAnchor: 'x509-tenant' })).toBe('CLAIMS_INVALID');
  expect(await offer({ registerId, statusList: false })).toBe('CLAIMS_INVALID');
  expect(await offer({ registerId: '../x' })).toBe('INVALID_REQUEST');
  fixture.registers.isAway = true;
  expect(await offer({ registerId })).toBe('REGISTERS_UNAVAILABLE');
});
