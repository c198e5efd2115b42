import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { walletAddress } from '#core/crypto/address.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { memberDid } from '#core/ledger/did.ts';
import { attestationBytes, verifyAttestation } from '#core/ledger/owner-attestation.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import {
  openFixture,
  openReplica,
  type Replica,
  type ReplicaOptions,
  rpcContext,
} from '../testing/fixture.ts';
import { systemSignerHandlers } from './rpc.ts';

const REGISTER = rpcContext('service-register');
const PATH = 'platform:register-control';

function request(change: Partial<Record<string, string>> = {}) {
  return {
    registerId: randomBytes(16).toString('hex'),
    transactionId: randomBytes(32).toString('hex'),
    payloadHash: randomBytes(32).toString('hex'),
    derivationPath: PATH,
    transactionType: 'Genesis',
    ...change,
  } as Parameters<ReturnType<typeof systemSignerHandlers>['signControl']>[0];
}

describe('signing component, control path', () => {
  let first: Replica & ReplicaOptions;
  let second: Replica;

  beforeAll(async () => {
    first = await openFixture('wallet_control');
    second = await openReplica(first);
  });

  afterAll(async () => {
    await second.close();
    await first.close();
  });

  async function auditOf(registerId: string) {
    return first.db.read
      .selectFrom('signing_audit')
      .selectAll()
      .where('register_id', '=', registerId)
      .orderBy('id')
      .execute();
  }

  test('signs the digest that it computes, with the same key on every replica, and writes the row', async () => {
    const controlRequest = request();
    const answer = await systemSignerHandlers(first.deps).signControl(controlRequest, REGISTER);
    const key = await systemSignerHandlers(second.deps).getSystemKey(
      { derivationPath: PATH } as never,
      REGISTER,
    );
    expect(answer.key).toEqual(key.key);
    const publicKey = decodeBase64Any(answer.key?.publicKey ?? '');
    expect(answer.key?.walletAddress).toBe(walletAddress('ED25519', publicKey));
    const digest = signingDigest(controlRequest.transactionId, controlRequest.payloadHash);
    const signature = answer.signature ?? new Uint8Array();
    expect(first.deps.verifier.verifyDigest({ algorithm: 'ED25519', publicKey, digest, signature })).toBe(
      true,
    );
    expect(await auditOf(controlRequest.registerId)).toMatchObject([
      {
        caller: REGISTER.peer.spiffeId,
        caller_subject: REGISTER.caller?.subject,
        transaction_type: 'Genesis',
        transaction_id: controlRequest.transactionId,
        derivation_path: PATH,
        decision: 'Signed',
        reason: null,
      },
    ]);
  });

  test('the eleventh signature in a minute is refused, counted over two replicas, with a row each', async () => {
    const { registerId } = request();
    const replicas = [first, second];
    const attempts = Array.from({ length: 14 }, (_, i) => {
      const replica = replicas[i % 2] ?? first;
      return systemSignerHandlers(replica.deps).signControl(request({ registerId }), REGISTER);
    });
    const outcomes = await Promise.allSettled(attempts);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused).toHaveLength(4);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ kind: 'rate_limited', code: 'RATE_LIMITED' });
      expect(reason.retryAfterSeconds).toBeGreaterThan(0);
      expect(reason.retryAfterSeconds).toBeLessThanOrEqual(60);
    }
    const rows = await auditOf(registerId);
    expect(rows.filter((row) => row.decision === 'Signed')).toHaveLength(10);
    expect(rows.filter((row) => row.reason === 'RATE_LIMITED')).toHaveLength(4);
    await expect(
      systemSignerHandlers(first.deps).signControl(request(), REGISTER),
      'another register has its own bucket',
    ).resolves.toBeDefined();
  });

  test('a signature leaves the window after a minute, one by one', async () => {
    const { registerId } = request();
    const sign = () => systemSignerHandlers(first.deps).signControl(request({ registerId }), REGISTER);
    for (let i = 0; i < 10; i += 1) await sign();
    await expect(sign()).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    await first.db.pool.query(
      `UPDATE signing_buckets SET recent[1] = clock_timestamp() - interval '61 seconds' WHERE register_id = $1`,
      [registerId],
    );
    await expect(sign()).resolves.toBeDefined();
    await expect(sign()).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  });

  const register = { clientId: 'service-register', canSignSystem: true, change: {} };
  const docketPath = { derivationPath: 'platform:docket-signing' };
  const otherPath = { derivationPath: 'platform:blueprint-publish' };

  test.each([
    { what: 'unknown path', ...register, change: otherPath, code: 'DERIVATION_PATH_REFUSED' },
    {
      what: 'docket path from the register service',
      ...register,
      change: docketPath,
      code: 'SIGNING_NOT_ALLOWED',
    },
    {
      what: 'docket path on the unary call, from a validator',
      ...register,
      clientId: 'validator-0',
      change: docketPath,
      code: 'SIGNING_NOT_ALLOWED',
    },
    { what: 'caller without claim', ...register, canSignSystem: false, code: 'SIGNING_CLAIM_MISSING' },
    {
      what: 'validator on the control path',
      ...register,
      clientId: 'validator-0',
      code: 'SIGNING_NOT_ALLOWED',
    },
    { what: 'another service', ...register, clientId: 'service-tenant', code: 'SIGNING_NOT_ALLOWED' },
  ])('$what is refused with a row', async ({ clientId, canSignSystem, change, code }) => {
    const controlRequest = request(change);
    const context = rpcContext(clientId, { canSignSystem });
    const attempt = systemSignerHandlers(first.deps).signControl(controlRequest, context);
    await expect(attempt).rejects.toMatchObject({ kind: 'forbidden', code });
    expect(await auditOf(controlRequest.registerId)).toMatchObject([
      {
        caller: context.peer.spiffeId,
        derivation_path: controlRequest.derivationPath,
        decision: 'Refused',
        reason: code,
      },
    ]);
  });

  test('a caller without any token is refused with a row', async () => {
    const controlRequest = request();
    const { caller: _caller, ...context } = REGISTER;
    const attempt = systemSignerHandlers(first.deps).signControl(controlRequest, context);
    await expect(attempt).rejects.toMatchObject({ code: 'SIGNING_CLAIM_MISSING' });
    expect(await auditOf(controlRequest.registerId)).toMatchObject([
      { caller_subject: '', decision: 'Refused' },
    ]);
  });

  test.each([
    ['type', { transactionType: 'Action' }],
    ['register', { registerId: 'x'.repeat(500) }],
    ['transaction', { transactionId: 'abc' }],
    ['payload hash', { payloadHash: `${'0'.repeat(63)}g` }],
  ])('malformed %s is refused with a row', async (_name, change) => {
    const controlRequest = request(change);
    await expect(
      systemSignerHandlers(first.deps).signControl(controlRequest, REGISTER),
    ).rejects.toMatchObject({
      kind: 'invalid',
    });
    expect(await auditOf(controlRequest.registerId.slice(0, 128))).toMatchObject([{ decision: 'Refused' }]);
  });

  test('only a checkpoint of the register is signed, and counts in its own bucket', async () => {
    const { registerId } = request();
    const root = randomBytes(32).toString('base64');
    const body = `${testInstallation}/registers/${registerId}\n12\n${root}\n`;
    const handlers = systemSignerHandlers(first.deps);
    for (let i = 0; i < 12; i += 1) {
      const { signature, key } = await handlers.signCheckpoint({ registerId, body } as never, REGISTER);
      const publicKey = decodeBase64Any(key?.publicKey ?? '');
      const check = {
        algorithm: 'ED25519',
        publicKey,
        message: Buffer.from(body),
        signature: signature ?? new Uint8Array(),
      } as const;
      expect(first.deps.verifier.verify(check)).toBe(true);
    }
    const wrong = [
      `${testInstallation}/registers/${randomBytes(16).toString('hex')}\n12\n${root}\n`,
      `elsewhere/registers/${registerId}\n12\n${root}\n`,
      body.slice(0, -1),
      `${body}\n`,
      body.replace('\n12\n', '\n012\n'),
      body.replace('\n12\n', '\n9999999999999999\n'),
      `${body}extra\n`,
      randomBytes(32).toString('latin1'),
    ];
    for (const each of wrong) {
      const attempt = handlers.signCheckpoint({ registerId, body: each } as never, REGISTER);
      await expect(attempt).rejects.toMatchObject({ kind: 'invalid' });
    }
    const rows = await auditOf(registerId);
    expect(rows.filter((row) => row.decision === 'Signed')).toHaveLength(12);
    expect(rows.filter((row) => row.decision === 'Refused')).toHaveLength(wrong.length);
  });

  test('the installation attests that it owns a register, only in its own name', async () => {
    const { registerId } = request();
    const facts = {
      registerId,
      registerName: 'System register',
      grantedAt: '2026-11-22T10:00:00.0000000+00:00',
    };
    const handlers = systemSignerHandlers(first.deps);
    const { signature = new Uint8Array(), key } = await handlers.signOwnership(facts as never, REGISTER);
    const { publicKey = '', algorithm = '', walletAddress: address = '' } = key ?? {};
    const subject = memberDid(address);
    const signed = { publicKey, algorithm, signature };
    const verifies = (role: 'Owner' | 'Admin', name: string) => {
      const data = { role, subject, registerId, registerName: name, grantedAt: facts.grantedAt };
      return verifyAttestation(createVerifier(nodeEd25519()), attestationBytes(data), subject, signed);
    };
    expect([verifies('Owner', facts.registerName), verifies('Admin', facts.registerName)]).toEqual([
      true,
      false,
    ]);
    for (const wrong of [{ registerName: '' }, { registerName: 'a\u0000b' }, { grantedAt: 'now' }]) {
      const attempt = handlers.signOwnership({ ...facts, ...wrong } as never, REGISTER);
      await expect(attempt).rejects.toMatchObject({ kind: 'invalid' });
    }
    const stranger = handlers.signOwnership(
      facts as never,
      rpcContext('validator-0', { canSignSystem: true }),
    );
    await expect(stranger).rejects.toMatchObject({ code: 'SIGNING_NOT_ALLOWED' });
    const rows = await auditOf(registerId);
    expect(rows.map((row) => [row.transaction_type, row.decision])).toEqual([
      ['Ownership', 'Signed'],
      ['Ownership', 'Refused'],
      ['Ownership', 'Refused'],
      ['Ownership', 'Refused'],
      ['Ownership', 'Refused'],
    ]);
  });

  test('audit rows cannot be changed or removed', async () => {
    await expect(first.db.pool.query('UPDATE signing_audit SET reason = NULL')).rejects.toThrow(
      'append-only',
    );
    await expect(first.db.pool.query('DELETE FROM signing_audit')).rejects.toThrow('append-only');
    await expect(first.db.pool.query('TRUNCATE signing_audit')).rejects.toThrow('append-only');
  });
});
