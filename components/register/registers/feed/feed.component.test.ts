import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseRegisterEvent, type RegisterEvent } from '#core/events/register-events.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { type Bus, connectBus } from '#kit/bus/bus.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { ReadEventsRequestSchema } from '#protos/gen/chancery/register/v1/register_pb.js';
import { type Broker, startBroker } from '../../../standalone/bus/broker.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { contextOf, organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { eventHandlers } from './rpc.ts';

const { log } = testRuntime('feed');
let broker: Broker;
let producer: Bus;
let register: TestRegister;

beforeAll(async () => {
  broker = await startBroker({ host: '127.0.0.1', port: 0, log });
  producer = await connectBus({ url: broker.url, name: 'register', log });
  register = await startTestRegister('feed', { onWake: (subject) => producer.publish(subject) });
});
afterAll(async () => {
  await register.stop();
  await producer.close();
  await broker.stop();
});

async function read(after = '', limit = 0) {
  const handlers = eventHandlers(register.database.read);
  const request = create(ReadEventsRequestSchema, { after, limit });
  const {
    events = [],
    cursor = '',
    complete = false,
  } = await handlers.readEvents(request, contextOf('service-peer'));
  const parsed = events.map(({ id = '', kind = '', data = '' }) => {
    const event = parseRegisterEvent(id, kind, JSON.parse(data));
    if (event === undefined) throw new Error(`${kind} is not known`);
    return event;
  });
  return { events: parsed, cursor, complete };
}

/** Reads everything after a cursor in pages. Other databases of the server hold events back, hence the wait. */
async function readAll(limit: number, count: number, from = ''): Promise<RegisterEvent[]> {
  return waitFor(
    async () => {
      const events: RegisterEvent[] = [];
      for (let cursor = from; ; ) {
        const page = await read(cursor, limit);
        expect(page.events.length).toBeLessThanOrEqual(limit);
        events.push(...page.events);
        if (page.complete) return events.length >= count ? events : undefined;
        cursor = page.cursor;
      }
    },
    { what: `${count} events` },
  );
}

const textOf = ({ kind, data }: RegisterEvent) => {
  const { registerId: _, occurredAt: __, traceId: ___, ...rest } = data;
  return [kind, rest];
};

async function sealed(registerId: string, count: number): Promise<string[]> {
  const transactions = Array.from({ length: count }, (_, n) => transaction({ registerId, payload: { n } }));
  const bundle = buildDocket(await register.state(registerId), transactions, register.members);
  expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
  return transactions.map(({ txId }) => txId);
}

describe('the feed of the register hub', () => {
  let registerId: string;
  let ids: string[];

  it('contains the events of a register in order, with ids and times only', async () => {
    registerId = await register.createRegister();
    ids = await sealed(registerId, 5);
    const { head } = await register.state(registerId);
    const events = await readAll(500, 17);
    const mine = events.filter(({ data }) => data.registerId === registerId);
    const genesis = mine.find(({ kind }) => kind === 'TransactionConfirmed');
    expect(mine.slice(0, 6).map(textOf)).toEqual([
      ['RegisterCreated', { organizationIds: [organizationId] }],
      ['RegisterStatusChanged', { status: 'Online', organizationIds: [organizationId] }],
      ['DocketSealed', { docketNumber: 0, docketHash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      ['RegisterHeightUpdated', { newHeight: 1 }],
      [
        'TransactionConfirmed',
        { transactionId: genesis && 'transactionId' in genesis.data && genesis.data.transactionId },
      ],
      ['TransactionReceipt', expect.objectContaining({ docketNumber: 0 })],
    ]);
    expect(mine.slice(6, 8).map(textOf)).toEqual([
      ['DocketSealed', { docketNumber: 1, docketHash: head?.hash }],
      ['RegisterHeightUpdated', { newHeight: 2 }],
    ]);
    expect(mine.slice(8).map(({ kind }) => kind)).toEqual(
      ids.flatMap(() => ['TransactionConfirmed', 'TransactionReceipt']),
    );
    expect(mine.slice(8).flatMap(({ data }) => ('transactionId' in data ? data.transactionId : []))).toEqual(
      ids.flatMap((id) => [id, id]),
    );
    expect(new Set(mine.map(({ id }) => id)).size).toBe(mine.length);
    for (const { data } of mine) expect(data.occurredAt).toMatch(/Z$/);
  });

  it('names the receipt that the route returns', async () => {
    const events = await readAll(500, 17);
    const found = events.find(
      ({ kind, data }) =>
        kind === 'TransactionReceipt' && 'transactionId' in data && data.transactionId === ids[2],
    );
    const path = `/api/registers/${registerId}/transactions/${ids[2]}/receipt`;
    const { body } = await register.call('GET', path, { token: 'admin' });
    expect(found?.data).toMatchObject({
      receiptId: body.receiptId,
      sealedAt: body.sealedAt,
      docketNumber: body.docketNumber,
    });
  });

  it.each([1, 2, 3, 7])('is the same in pages of %i, also within a docket', async (limit) => {
    const whole = await readAll(500, 17);
    expect(await readAll(limit, whole.length)).toEqual(whole);
  });

  it('continues where a consumer stopped, without repetitions', async () => {
    const first = await read('', 9);
    expect(first).toMatchObject({ complete: false, cursor: expect.stringMatching(/\+\d+$/) });
    const rest = await readAll(500, 8, first.cursor);
    expect([...first.events, ...rest]).toEqual(await readAll(500, 17));
    const end = await read((await read('', 1_000)).cursor);
    expect(end).toMatchObject({ events: [], complete: true });
  });

  it('publishes a wake signal over NATS, and a woken consumer finds the event', async () => {
    const consumer = await connectBus({ url: broker.url, name: 'consumer', log });
    let { cursor } = await read('', 1_000);
    const got: RegisterEvent[] = [];
    const rings = { count: 0 };
    const unsubscribe = consumer.subscribe(SUBJECTS.registerEvents, () => {
      rings.count += 1;
    });
    const deleted = await register.createRegister('Short lived');
    const { status } = await register.call('DELETE', `/api/registers/${deleted}`, { token: 'admin' });
    expect(status).toBe(204);
    await waitFor(() => rings.count >= 2);
    await waitFor(async () => {
      const page = await read(cursor, 3);
      cursor = page.cursor;
      got.push(...page.events);
      return got.some(({ kind }) => kind === 'RegisterDeleted');
    });
    const mine = got.filter(({ data }) => data.registerId === deleted);
    expect(mine[0]?.kind).toBe('RegisterCreated');
    expect(mine.at(-1)).toMatchObject({
      id: `RegisterDeleted:${deleted}`,
      kind: 'RegisterDeleted',
      data: { organizationIds: [organizationId] },
    });
    expect(new Set(got.map(({ id }) => id)).size).toBe(got.length);
    unsubscribe();
    await consumer.close();
  });

  it('refuses a foreign cursor', async () => {
    for (const cursor of ['x', '1', '1.2+', '1.2+0', '1.2+3+4', '+3', '1.2+-1'])
      await expect(read(cursor)).rejects.toMatchObject({ kind: 'invalid' });
  });
});
