import { create } from '@bufbuild/protobuf';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { ListValidatorsRequestSchema } from '#protos/gen/chancery/register/v1/register_pb.js';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { directoryHandlers } from './rpc.ts';
import { memberAddresses } from './store.ts';

const owner = testKey(1);
const ids = ['validator-0', 'validator-1', 'validator-2', 'validator-3'];

describe('a register with four validators', () => {
  const clock = manualClock(1_790_000_000_000);
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('directory', { members: 4, clock });
    registerId = await register.createRegister();
  });
  afterEach(() => {
    register.validators.away.clear();
    register.validators.submittedTo.length = 0;
    clock.advance(60_000);
  });
  afterAll(() => register.stop());

  async function begin() {
    const begun = await register.call('POST', '/api/registers/initiate', {
      token: 'admin',
      body: { title: 'x' },
    });
    const { registerId: id, nonce } = begun.body;
    const body = { registerId: id, nonce, autoAttest: true };
    const finalize = () => register.call('POST', '/api/registers/finalize', { token: 'admin', body });
    return { id: String(id), finalize };
  }

  const submit = (n: number) =>
    register.call('POST', `/api/registers/${registerId}/transactions`, {
      token: 'admin',
      body: {
        transactionType: 'Action',
        senderAddress: owner.walletAddress,
        payload: encodeBase64(canonicalBytes({ n })),
        metadata: {},
      },
    });

  it('has all announced validators as members, each with its proof, and submits genesis to each', async () => {
    const { id, finalize } = await begin();
    expect((await finalize()).status).toBe(200);
    expect((await register.state(id)).members.map((member) => member.validatorId)).toEqual(ids);
    await waitFor(() => register.validators.submittedTo.length >= 4, { what: 'genesis at every member' });
    expect(new Set(register.validators.submittedTo)).toEqual(new Set(ids));
  });

  it('leaves an unreachable validator out of a new register', async () => {
    register.validators.away.add('validator-2');
    const { id, finalize } = await begin();
    expect((await finalize()).status).toBe(200);
    const members = (await register.state(id)).members.map((member) => member.validatorId);
    expect(members).toEqual(['validator-0', 'validator-1', 'validator-3']);
  });

  it('creates no register with fewer than a quorum of the validators', async () => {
    register.validators.away.add('validator-2').add('validator-0');
    const { finalize } = await begin();
    const refused = await finalize();
    expect([refused.status, refused.body.code]).toEqual([502, 'VALIDATOR_UNAVAILABLE']);
    expect(refused.body.detail).toContain('validator-0, validator-2');
    register.validators.away.clear();
    expect((await finalize()).status).toBe(200);
  });

  it('submits genesis to a member that was unreachable, although the others have it', async () => {
    const { id, finalize } = await begin();
    const { submit: submitTo } = register.validators;
    const took = new Set<string>();
    let isAway = true;
    register.validators.submit = async (at, bytes) => {
      if (at.validatorId === 'validator-3' && isAway) return { status: 503, body: {}, retryAfterSeconds: 1 };
      const answer = await submitTo(at, bytes);
      if (Buffer.from(bytes).includes(id)) took.add(at.validatorId);
      return answer;
    };
    await finalize();
    await waitFor(() => took.size === 3, { what: 'genesis at three members' });
    const row = async () =>
      (await register.database.pool.query('select last_error from genesis_work order by register_no desc'))
        .rows[0];
    await waitFor(async () => String((await row()).last_error).includes('validator-3: status 503'));
    isAway = false;
    await waitFor(
      () => {
        clock.advance(1_000);
        return took.size === 4;
      },
      { what: 'genesis at the fourth', deadlineMs: 15_000 },
    );
    register.validators.submit = submitTo;
  });

  it('submits genesis to a member that announces itself at once', async () => {
    const { id, finalize } = await begin();
    const { submit: submitTo } = register.validators;
    const took: string[] = [];
    let isAway = true;
    register.validators.submit = async (at, bytes) => {
      if (at.validatorId === 'validator-3' && isAway)
        throw new AppError('unavailable', 'UNAVAILABLE', 'away');
      const answer = await submitTo(at, bytes);
      if (Buffer.from(bytes).includes(id)) took.push(at.validatorId);
      return answer;
    };
    await finalize();
    const refused = async () =>
      (await register.database.pool.query('select 1 from genesis_work where last_error is not null')).rows
        .length;
    await waitFor(async () => (await refused()) > 0, { what: 'the refusal of the fourth' });
    isAway = false;
    // The clock stands: nothing is due before its time.
    register.ledger.onAnnounced('validator-9');
    register.ledger.onAnnounced('validator-3');
    await waitFor(() => took.includes('validator-3'), { what: 'genesis at the fourth' });
    await waitFor(async () => (await refused()) === 0, { what: 'the end of the submission' });
    register.validators.submit = submitTo;
  });

  it('sends a submission to another member when one is unreachable, and then calls that one last', async () => {
    const [first] = await memberAddresses(register.database.read, 1);
    register.validators.away.add(first?.validatorId ?? '');
    const calls: string[] = [];
    const { submit: submitTo } = register.validators;
    register.validators.submit = (at, bytes) => {
      calls.push(at.validatorId);
      return submitTo(at, bytes);
    };
    const statuses = [(await submit(1)).status, (await submit(2)).status];
    register.validators.submit = submitTo;
    expect(statuses).toEqual([202, 202]);
    expect(calls).toHaveLength(3);
    expect(calls.slice(1)).not.toContain(first?.validatorId);
  });

  it('calls another member when one cannot accept it now, and returns its answer when none can', async () => {
    const busy = { status: 503, body: { code: 'REGISTER_NOT_READY' }, retryAfterSeconds: 5 };
    register.validators.refuseNext(busy);
    expect((await submit(3)).status).toBe(202);
    for (const _ of ids) register.validators.refuseNext(busy);
    const refused = await submit(4);
    expect([refused.status, refused.body.code]).toEqual([503, 'REGISTER_NOT_READY']);
    expect(refused.headers['retry-after']).toBe('5');
  });

  it('returns the refusal of one member', async () => {
    register.validators.refuseNext({ status: 409, body: { code: 'TX_CONFLICT' }, retryAfterSeconds: 0 });
    expect((await submit(5)).status).toBe(409);
  });

  it('answers 503 when no member can be reached', async () => {
    for (const id of ids) register.validators.away.add(id);
    const refused = await submit(6);
    expect([refused.status, refused.body.code]).toEqual([503, 'VALIDATOR_UNAVAILABLE']);
  });

  it('seals with three of four, and answers at once that two are not a quorum', async () => {
    const sealNow = () =>
      register.call('POST', `/api/registers/${registerId}/dockets/seal`, { token: 'admin' });
    expect((await submit(7)).status).toBe(202);
    register.validators.away.add('validator-1').add('validator-3');
    const refused = await sealNow();
    expect([refused.status, refused.body.code]).toEqual([503, 'QUORUM_UNAVAILABLE']);
    register.validators.away.delete('validator-1');
    expect((await sealNow()).status).toBe(201);
    expect((await sealNow()).body.code).toBe('NO_PENDING_TRANSACTIONS');
  });

  it('lists transactions pending at any member once, without those sealed meanwhile', async () => {
    expect((await submit(8)).status).toBe(202);
    const { listPending } = register.validators;
    const lagging = await listPending({ validatorId: 'validator-0', endpoint: 'x' }, registerId, 10);
    await register.seal(registerId);
    expect((await submit(9)).status).toBe(202);
    register.validators.listPending = async (at, id, limit) => {
      const own = await listPending(at, id, limit);
      return at.validatorId === 'validator-2' ? { ...own, items: [...lagging.items, ...own.items] } : own;
    };
    const listed = await register.call('GET', `/api/registers/${registerId}/transactions?status=pending`, {
      token: 'admin',
    });
    register.validators.listPending = listPending;
    expect(listed.body.totalCount).toBe(1);
    expect(listed.body.items[0].txId).not.toBe(lagging.items[0]?.txId);
  });

  it('lists announced validators with address and time', async () => {
    const { database } = register;
    const handlers = directoryHandlers({ database, clock, onAnnounced: () => undefined });
    const peer = { clientId: 'validator-9', spiffeId: 'spiffe://test/service/validator-9' };
    const context: RpcContext = { peer, signal: new AbortController().signal };
    const listed = await handlers.listValidators(create(ListValidatorsRequestSchema), context);
    expect(listed.validators?.map((one) => one.validatorId)).toEqual(ids);
    const [entry] = listed.validators ?? [];
    expect(entry).toMatchObject({ endpoint: '127.0.0.1:1', version: '1', algorithm: 'ED25519' });
    expect(Number(entry?.announcedAtMs)).toBe(1_790_000_000_000);
  });

  it('counts a member that never announced itself as one that cannot be reached', async () => {
    const change = `update validator_directory set validator_id = 'validator-8' where validator_id = $1`;
    await register.database.pool.query(change, ['validator-3']);
    const members = await memberAddresses(register.database.read, 1);
    expect(members.at(-1)).toEqual({ validatorId: 'validator-3', endpoint: '' });
    expect(members).toHaveLength(4);
  });
});
