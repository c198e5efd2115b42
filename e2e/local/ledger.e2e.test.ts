import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkEvidence, collectEvidence, flipOneByte } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitCount,
  waitOnline,
} from '../harness/journey.ts';
import { createOutsideKey, type Submission, signSubmission } from '../harness/outside.ts';
import { installation } from '../harness/shared-system.ts';
import { inParallel, until } from '../harness/wait.ts';

const here = installation();
const submitPath = '/api/v1/transactions/validate';
const unknownTx = 'ab'.repeat(32);

describe('a register', () => {
  let registerId = '';
  let owner: Wallet;
  const key = createOutsideKey();
  const send = (json: unknown) => here.api.send('POST', submitPath, { token: here.token(), json });
  const refused = async (json: unknown): Promise<[number, unknown]> => {
    const answer = await send(json);
    return [answer.status, (answer.body as { code?: string }).code];
  };

  beforeAll(async () => {
    owner = await createWallet(here.api, here.token(), 'ED25519');
    registerId = await createRegister(here.api, here.token(), 'Journey register', owner);
    await waitOnline(here.api, here.token(), registerId);
  });

  test('docket 0 is genesis and links to nothing', async () => {
    const answer = await here.api.expect(200, 'GET', `/api/registers/${registerId}/dockets/0`, {
      token: here.token(),
    });
    expect(answer.body).toMatchObject({ docketNumber: 0, isGenesis: true, previousHash: '0'.repeat(64) });
  });

  test('waiting transactions, previews, metrics and missing dockets are readable through the gateway', async () => {
    const token = here.token();
    const ask = async (path: string) => (await here.api.expect(200, 'GET', path, { token })).body;
    expect(await ask(`/api/validation/transactions/${registerId}`)).toMatchObject({ items: [], page: 1 });
    const build = { token, json: { registerId } };
    const built = await here.api.expect(200, 'POST', '/api/validation/dockets/build', build);
    expect(built.body).toMatchObject({ isSuccess: false, docket: null });
    expect(await ask('/api/metrics/dockets')).toMatchObject({ unreachable: [] });
    expect(await ask('/api/metrics/transactions')).toMatchObject({ unreachable: [] });
    expect(JSON.stringify(await ask('/api/metrics/mempool'))).toContain(registerId);
    const config = { token, json: { consensus: { signatureThresholdMin: 1 } } };
    const refusedPatch = await here.api.expect(400, 'PUT', '/api/admin/config', config);
    expect(refusedPatch.body).toMatchObject({ code: 'POLICY_CONTROLLED' });
    // With a token, because an installation may keep it private.
    await until('nothing is missing', 15_000, async () => {
      const { status } = (await ask('/health/sync')) as { status: string };
      return status === 'synced' ? true : undefined;
    });
  });

  test('a wrong nonce and a second finalisation are refused', async () => {
    const json = { registerId, nonce: 'A'.repeat(43), signedAttestations: [] };
    const answer = await here.api.send('POST', '/api/registers/finalize', { token: here.token(), json });
    expect([400, 401, 409]).toContain(answer.status);
  });

  test('anonymous callers may not initiate', async () => {
    const answer = await here.api.send('POST', '/api/registers/initiate', { json: { title: 'x' } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
  });

  test('signed transactions are confirmed, in order, and verify offline', async () => {
    const first = signSubmission(key, { registerId, payload: { n: 0 } });
    const second = signSubmission(key, { registerId, payload: { n: 1 }, previous: first.TransactionId });
    const more = Array.from({ length: 60 }, (_, n) =>
      signSubmission(key, { registerId, payload: { n: n + 2 } }),
    );
    for (const json of [first, second]) {
      expect((await send(json)).body).toMatchObject({ isValid: true, added: true });
    }
    await inParallel(more, 8, send);
    for (const { TransactionId } of [first, second, ...more]) {
      await waitConfirmed(here.api, here.token(), registerId, TransactionId);
    }
    const evidence = await collectEvidence(here.api, here.token(), registerId);
    expect(checkEvidence(evidence)).toMatch(/^[0-9a-f]{64}$/);
    const order = evidence.dockets.flatMap((docket) => docket.transactionIds);
    expect(order.indexOf(first.TransactionId)).toBeLessThan(order.indexOf(second.TransactionId));
    expect(flipOneByte(evidence).length).toBeGreaterThan(5);
  });

  test('the register service signs for its caller and for no other', async () => {
    const token = here.token();
    const submission = { registerId, sender: owner.walletAddress, payload: { by: 'rest' } };
    const txId = await submitThroughRegister(here.api, token, submission);
    await waitConfirmed(here.api, token, registerId, txId);
    const answer = await here.api.send('POST', `/api/registers/${registerId}/transactions`, {
      token,
      json: { transactionType: 'Action', senderAddress: key.address, payload: 'e30=', metadata: {} },
    });
    expect(answer.status).toBe(403);
  });

  test('tampered and impossible transactions are refused with their codes', async () => {
    const sound = signSubmission(key, { registerId, payload: { tampered: false } });
    const with_ = (change: Partial<Submission>): Submission => ({ ...sound, ...change });
    expect(await refused(with_({ PayloadHash: 'cd'.repeat(32) }))).toEqual([400, 'VAL_HASH_001']);
    const forged = sound.Signatures.map((one) => ({
      ...one,
      SignatureValue: Buffer.alloc(64, 7).toString('base64'),
    }));
    expect(await refused(with_({ Signatures: forged }))).toEqual([400, 'VAL_SIG_002']);
    const orphan = signSubmission(key, { registerId, payload: { orphan: true }, previous: unknownTx });
    expect(await refused(orphan)).toEqual([422, 'VAL_CHAIN_001']);
    const late = signSubmission(key, {
      registerId,
      payload: { late: true },
      expiresAtMs: Date.now() - 1_000,
    });
    expect(await refused(late)).toEqual([400, 'VAL_TIME_003']);
    const early = signSubmission(key, {
      registerId,
      payload: { early: true },
      createdAtMs: Date.now() + 360_000,
    });
    expect(await refused(early)).toEqual([400, 'VAL_TIME_001']);
    const control = signSubmission(key, { registerId, payload: { c: 1 }, metadata: { Type: 'Control' } });
    const [status, code] = await refused(control);
    expect(status).toBe(403);
    expect(String(code)).toMatch(/^VAL_PERM_/);
    const { PayloadHash } = signSubmission(key, { registerId, payload: { other: 1 } });
    expect((await refused(with_({ Payload: { other: 1 }, PayloadHash })))[0]).toBeGreaterThanOrEqual(400);
  });

  test('a person of an organisation without a subscription may not submit', async () => {
    const token = here.token();
    const subdomain = `other-${Date.now().toString(36)}`;
    const made = await here.api.expect(201, 'POST', '/api/organizations', {
      token,
      json: { name: 'Other', subdomain },
    });
    const { id } = made.body as { id: string };
    const account = {
      email: `u@${subdomain}.example`,
      password: 'a long enough phrase 42',
      displayName: 'U',
    };
    await here.api.expect(201, 'POST', `/api/organizations/${id}/users`, {
      token,
      json: { ...account, roles: ['User'] },
    });
    const signedIn = await here.api.expect(200, 'POST', '/api/auth/login', {
      json: { email: account.email, password: account.password, organizationSubdomain: subdomain },
    });
    const theirs = (signedIn.body as { access_token: string }).access_token;
    const json = signSubmission(key, { registerId, payload: { foreign: true } });
    const answer = await here.api.send('POST', submitPath, { token: theirs, json });
    expect([answer.status, (answer.body as { code: string }).code]).toEqual([403, 'SUBSCRIPTION_REQUIRED']);
    expect((await here.api.send('GET', `/api/registers/${registerId}`, { token: theirs })).status).toBe(404);
  });

  test('a repeated id with other content is a conflict, an identical one is accepted as known', async () => {
    const sound = signSubmission(key, { registerId, payload: { replay: 1 } });
    expect((await send(sound)).body).toMatchObject({ added: true });
    expect((await send(sound)).body).toMatchObject({ added: false, alreadyKnown: true });
  });

  test('the same payload of one sender is accepted once, whatever its id; another sender may submit it too', async () => {
    const say = (who = key, previous?: string) =>
      signSubmission(who, {
        registerId,
        payload: { vote: 'yes' },
        metadata: { n: randomUUID() },
        ...(previous === undefined ? {} : { previous }),
      });
    const answers = await inParallel(
      Array.from({ length: 20 }, () => say()),
      20,
      send,
    );
    const codes = answers.map((answer) => [answer.status, (answer.body as { code?: string }).code].join(' '));
    expect(codes.toSorted()).toEqual(['200 ', ...Array.from({ length: 19 }, () => '422 VAL_REPLAY_001')]);
    const taken = answers.flatMap(({ status, body }) => (status === 200 ? [body] : []));
    const [{ transactionId: first } = { transactionId: '' }] = taken as { transactionId: string }[];
    await waitConfirmed(here.api, here.token(), registerId, first);
    expect(await refused(say())).toEqual([422, 'VAL_REPLAY_001']);
    for (const legal of [say(createOutsideKey()), say(key, first)]) {
      expect((await send(legal)).body).toMatchObject({ added: true });
      await waitConfirmed(here.api, here.token(), registerId, legal.TransactionId);
    }
    const payload = Buffer.from(JSON.stringify({ through: 'the register' })).toString('base64');
    const body = { transactionType: 'Action', senderAddress: owner.walletAddress, payload, metadata: {} };
    const path = `/api/registers/${registerId}/transactions`;
    const submit = () => here.api.send('POST', path, { token: here.token(), json: body });
    expect((await submit()).status).toBe(202);
    const again = await submit();
    expect([again.status, (again.body as { code: string }).code]).toEqual([422, 'VAL_REPLAY_001']);
  });

  test('of fifty children of one predecessor exactly one is sealed', async () => {
    const parent = signSubmission(key, { registerId, payload: { parent: true } });
    await send(parent);
    const children = Array.from({ length: 50 }, (_, n) =>
      signSubmission(key, { registerId, payload: { child: n }, previous: parent.TransactionId }),
    );
    const answers = await inParallel(children, 50, send);
    const accepted = answers.filter((answer) => answer.status === 200);
    expect(accepted).toHaveLength(1);
    const codes = answers
      .filter((answer) => answer.status !== 200)
      .map((answer) => (answer.body as { code: string }).code);
    expect(new Set(codes)).toEqual(new Set(['VAL_CHAIN_FORK']));
    for (const { body } of accepted) {
      const { transactionId } = body as { transactionId: string };
      await waitConfirmed(here.api, here.token(), registerId, transactionId);
    }
  });

  test('malformed input is refused in the form of the specification and leaves nothing behind', async () => {
    const before = await here.api.expect(200, 'GET', `/api/registers/${registerId}/dockets`, {
      token: here.token(),
    });
    const bodies = ['{"TransactionId":', '[]', '{"TransactionId":1}', '{"a":1,"a":2}', '{"RegisterId":"zz"}'];
    for (const text of bodies) {
      const answer = await here.api.send('POST', submitPath, { token: here.token(), text });
      expect(answer.status, text).toBe(400);
      expect(answer.body, text).toMatchObject({
        code: expect.any(String),
        error: expect.any(String),
        path: submitPath,
      });
    }
    const after = await here.api.expect(200, 'GET', `/api/registers/${registerId}/dockets`, {
      token: here.token(),
    });
    expect((after.body as { totalCount: number }).totalCount).toBe(
      (before.body as { totalCount: number }).totalCount,
    );
  });

  test('unknown ids answer 404', async () => {
    const paths = [
      `/api/registers/${'0'.repeat(32)}`,
      '/api/registers/not-hex',
      `/api/registers/${registerId}/transactions/${unknownTx}`,
      `/api/registers/${registerId}/dockets/999999`,
    ];
    for (const path of paths) {
      expect((await here.api.send('GET', path, { token: here.token() })).status, path).toBe(404);
    }
  });

  test('Idempotency-Key makes a repeated submission one, and another body a conflict', async () => {
    const call = (payload: unknown) => ({
      token: here.token(),
      headers: { 'idempotency-key': 'journey-key-1' },
      json: {
        transactionType: 'Action',
        senderAddress: owner.walletAddress,
        payload: Buffer.from(JSON.stringify(payload)).toString('base64'),
        metadata: { blueprintId: 'journey', actionId: '1' },
      },
    });
    const path = `/api/registers/${registerId}/transactions`;
    const first = await here.api.expect(202, 'POST', path, call({ once: 1 }));
    const again = await here.api.expect(202, 'POST', path, call({ once: 1 }));
    expect(again.body).toEqual(first.body);
    await here.api.expect(409, 'POST', path, call({ once: 2 }));
  });

  test('?wait=confirmed answers with the confirmed record', async () => {
    const answer = await here.api.expect(
      200,
      'POST',
      `/api/registers/${registerId}/transactions?wait=confirmed&timeout=10`,
      {
        token: here.token(),
        json: {
          transactionType: 'Action',
          senderAddress: owner.walletAddress,
          payload: 'e30=',
          metadata: {},
        },
      },
    );
    expect(answer.body).toMatchObject({ status: 'confirmed', docketId: expect.any(String) });
  });

  test('totals agree with what was sealed', async () => {
    const evidence = await collectEvidence(here.api, here.token(), registerId);
    const sealed = evidence.dockets.flatMap((docket) => docket.transactionIds);
    await waitCount(here.api, here.token(), registerId, sealed.length);
    expect(new Set(sealed).size).toBe(sealed.length);
  });
});
