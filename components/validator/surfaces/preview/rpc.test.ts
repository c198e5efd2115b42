import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import {
  BuildDocketRequestSchema,
  BuildDocketResponseSchema,
  ListWaitingRequestSchema,
  ListWaitingResponseSchema,
} from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { systemAdmin, userCaller } from '../../testing/test-server.ts';
import { registerId, World } from '../../testing/world.ts';
import { previewHandlers } from './rpc.ts';
import { builtOf, waitingOf } from './wire.ts';

const world = new World();
const ids: string[] = [];
beforeAll(async () => {
  await world.open();
  await world.begin();
  await world.engine.setMode(registerId, 'Paused');
  for (let count = 0; count < 3; count += 1) {
    const { text, txId } = world.sign();
    await world.submit(text);
    ids.push(txId);
  }
});
afterAll(() => world.remove());

const handlers = previewHandlers({
  validatorId: 'validator-0',
  clock: world.runtime.clock,
  isSubscribed: async (organizationId) => organizationId === userCaller.organizationId,
  getRegister: (id) => world.engine.registers.get(id),
});
const context = (subject = userCaller): RpcContext => ({
  peer: { clientId: 'validator-7', spiffeId: 'spiffe://test/service/validator-7' },
  signal: new AbortController().signal,
  subject,
});
const elsewhere = { ...userCaller, organizationId: 'other' } as typeof userCaller;

describe('requests of a non-member to a member', () => {
  it('return the waiting transactions', async () => {
    const request = create(ListWaitingRequestSchema, { registerId, offset: 1, limit: 1 });
    const answer = create(ListWaitingResponseSchema, await handlers.listWaiting(request, context()));
    const bytes = toBinary(ListWaitingResponseSchema, answer);
    const waiting = waitingOf(fromBinary(ListWaitingResponseSchema, bytes));
    const second = world.register.pool.find(ids[1] ?? '')?.transaction;
    expect(waiting.total).toBe(3);
    expect(waiting.transactions).toEqual([
      { record: second?.record, addedAtMs: second?.addedAtMs, expiresAtMs: second?.expiresAtMs },
    ]);
    await expect(handlers.listWaiting(request, context(elsewhere))).rejects.toMatchObject({
      code: 'REGISTER_NOT_FOUND',
    });
  });

  it('return the docket that would be proposed', async () => {
    const request = create(BuildDocketRequestSchema, { registerId, maxTransactions: 2 });
    const answer = create(BuildDocketResponseSchema, await handlers.buildDocket(request, context()));
    const built = builtOf(fromBinary(BuildDocketResponseSchema, toBinary(BuildDocketResponseSchema, answer)));
    expect(built).toMatchObject({ processed: 3, rejected: 0, sealed: false });
    expect(built.header).toMatchObject({ registerId, transactionIds: ids.slice(0, 2) });
    expect(built.header).not.toHaveProperty('genesisConfig');
    const none = builtOf(create(BuildDocketResponseSchema, {}));
    expect(none.header).toBeUndefined();
  });

  it('may not seal without permission', async () => {
    const request = create(BuildDocketRequestSchema, { registerId, seal: true });
    await expect(handlers.buildDocket(request, context())).rejects.toMatchObject({ kind: 'forbidden' });
    await expect(handlers.buildDocket(request, context(systemAdmin))).rejects.toMatchObject({
      code: 'QUORUM_UNAVAILABLE',
    });
    expect(world.register.pool.size).toBe(3);
  });

  it('have their answers validated, since a validator may answer anything', () => {
    const header = { registerId: 'x' };
    expect(() => builtOf(create(BuildDocketResponseSchema, { header }))).toThrow(
      expect.objectContaining({ kind: 'bad_gateway' }),
    );
    const record = Buffer.from('{}');
    expect(() => waitingOf(create(ListWaitingResponseSchema, { transactions: [{ record }] }))).toThrow(
      expect.objectContaining({ kind: 'bad_gateway' }),
    );
  });
});
