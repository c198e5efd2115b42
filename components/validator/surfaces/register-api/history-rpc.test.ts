import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import {
  type WriteDocketRequest,
  WriteDocketRequestSchema,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import {
  ListHeightsRequestSchema,
  ReadDocketsRequestSchema,
} from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { registerId, World } from '../../testing/world.ts';
import { historyHandlers } from './history-rpc.ts';

const world = new World();
beforeAll(async () => {
  await world.open();
  await world.begin();
  for (let count = 0; count < 4; count += 1) {
    await world.submit(world.sign().text);
    await world.sealed(2 + count);
  }
});
afterAll(() => world.remove());

const context: RpcContext = {
  peer: { clientId: 'service-register', spiffeId: 'spiffe://test/service/service-register' },
  signal: new AbortController().signal,
};
const handlers = historyHandlers({
  registers: () => world.engine.registers.all(),
  readLoggedDockets: (id, range) => world.engine.readLoggedDockets(id, range),
});

async function read(from: number, id = registerId, reading = handlers): Promise<WriteDocketRequest[]> {
  const request = create(ReadDocketsRequestSchema, { registerId: id, from: BigInt(from) });
  const dockets: WriteDocketRequest[] = [];
  for await (const docket of reading.readDockets(request, context)) {
    const bytes = toBinary(WriteDocketRequestSchema, create(WriteDocketRequestSchema, docket));
    dockets.push(fromBinary(WriteDocketRequestSchema, bytes));
  }
  return dockets;
}

describe('dockets in the log for a register service that lost them', () => {
  it('are returned from a number on, as they were stored', async () => {
    const stored = world.ledger.dockets;
    const all = await read(0);
    expect(all.map(({ header }) => header?.hash)).toEqual(stored.map(({ docket }) => docket.header.hash));
    expect(all[1]?.transactions.map(({ record }) => [...record])).toEqual(
      stored[1]?.docket.transactions.map(({ record }) => [...record]),
    );
    expect(all[1]?.certificate?.signatures).toHaveLength(1);
    expect((await read(stored.length - 1)).map(({ header }) => header?.docketNumber)).toEqual([
      BigInt(stored.length - 1),
    ]);
    expect(await read(stored.length)).toEqual([]);
    expect(await read(0, 'ff'.repeat(16))).toEqual([]);
  });

  it('are read a few at a time, whatever the size of the log', async () => {
    const held: number[] = [];
    const piecemeal = historyHandlers({
      registers: () => [],
      maxBytes: 1,
      readLoggedDockets: async (id, range) => {
        const found = await world.engine.readLoggedDockets(id, range);
        held.push(found.decided.size);
        return found;
      },
    });
    expect(await read(0, registerId, piecemeal)).toEqual(await read(0));
    expect(held.length).toBeGreaterThan(1);
    expect(Math.max(...held)).toBeLessThan(world.ledger.dockets.length);
  });

  it('end where the register service was', async () => {
    const { registers } = await handlers.listHeights(create(ListHeightsRequestSchema, {}), context);
    expect(registers).toEqual([{ registerId, height: BigInt(world.ledger.dockets.length) }]);
  });

  it('are read by one call at a time, and refused without a register', async () => {
    const request = create(ReadDocketsRequestSchema, { registerId, from: 0n });
    const first = handlers.readDockets(request, context)[Symbol.asyncIterator]();
    await first.next();
    await expect(read(0)).rejects.toMatchObject({ kind: 'unavailable', code: 'HISTORY_BUSY' });
    await first.return?.();
    expect((await read(0)).length).toBeGreaterThan(1);
    await expect(read(0, 'nonsense')).rejects.toMatchObject({ kind: 'invalid' });
  });
});
