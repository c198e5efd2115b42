import { HttpTransportType } from '@microsoft/signalr';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  ask,
  connectClient,
  handshake,
  negotiate,
  openSocket,
  path,
  startTestHub,
  type TestHubOptions,
  transports,
} from './hub.fixture.ts';
import { hubMethod, Methods } from './methods.ts';

const limiter = createRateLimiter({ profile: 'production', clock: systemClock() });
const mebibyte = 1024 * 1024;

/** A hub that adds, streams and waits; what its methods saw of the end of their calls. */
async function startMethods({ limits }: Pick<TestHubOptions, 'limits'> = {}) {
  const seen = { ended: 0, cancelled: 0, running: 0 };
  const methods = [
    hubMethod({
      name: 'Add',
      parameters: 'first, second?',
      arguments: z.tuple([z.int(), z.int().nullish()]),
      run: async ({ client }, [first, second]) => {
        client.sendEvent('Said', ['added', first]);
        return first + (second ?? 0);
      },
    }),
    hubMethod({
      name: 'Refuse',
      parameters: 'kind',
      arguments: z.tuple([
        z.enum(['conflict', 'gone', 'forbidden', 'too_large', 'precondition_failed', 'internal']),
      ]),
      run: async (_call, [kind]) => {
        throw new AppError(kind, 'X', `It is ${kind}.`);
      },
    }),
    hubMethod({
      name: 'Count',
      parameters: 'to',
      arguments: z.tuple([z.int()]),
      isStreamed: true,
      run: async ({ stream }, [to]) => {
        for (let n = 0; n < to; n += 1) stream?.send(n);
        if (to < 0) throw new AppError('invalid', 'X', 'It cannot count down.');
        return to;
      },
    }),
    hubMethod({
      name: 'Wait',
      parameters: '',
      arguments: z.tuple([]),
      isStreamed: true,
      run: async ({ client, stream }) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        seen.running += 1;
        client.ended.addEventListener('abort', () => {
          seen.ended += 1;
        });
        stream?.cancelled.addEventListener('abort', () => {
          seen.cancelled += 1;
          resolve();
        });
        stream?.send('waiting');
        await promise;
        stream?.send('too late');
      },
    }),
    hubMethod({
      name: 'Length',
      parameters: 'text',
      arguments: z.tuple([z.string()]),
      run: async (_call, [text]) => text.length,
    }),
    hubMethod({
      name: 'Flood',
      parameters: 'bytes',
      arguments: z.tuple([z.int()]),
      run: async (_call, [bytes]) => 'x'.repeat(bytes),
    }),
  ];
  const hub = await startTestHub({
    methods: new Methods({ path, policy: 'RequirePlatformUser', methods, limiter }),
    ...(limits !== undefined && { limits }),
  });
  return { hub, seen };
}

/** What a stream gave, and how it ended. */
function taken(
  connection: Awaited<ReturnType<typeof connectClient>>['connection'],
  ...call: [string, ...unknown[]]
) {
  const items: unknown[] = [];
  const state: { end: string | undefined } = { end: undefined };
  const [name, ...args] = call;
  const subscription = connection.stream(name, ...args).subscribe({
    next: (item) => items.push(item),
    error: (error: Error) => {
      state.end = error.message;
    },
    complete: () => {
      state.end = 'complete';
    },
  });
  return { items, state, dispose: () => subscription.dispose() };
}

describe.each(transports)('a client of methods over %s', (_name, transport) => {
  it('gets results, refusals and events of its own', async () => {
    const { hub } = await startMethods();
    const { connection, said } = await connectClient(hub.url, { transport });
    const other = await connectClient(hub.url, { transport });
    expect(await connection.invoke('Add', 2, 3)).toBe(5);
    expect(await connection.invoke('Add', 2)).toBe(2);
    expect(await connection.invoke('Add', 2, null)).toBe(2);
    await waitFor(() => said.length === 3);
    expect(other.said).toEqual([]);
    await expect(connection.invoke('Multiply', 2, 3)).rejects.toThrow('Method not found.');
    await expect(connection.invoke('constructor')).rejects.toThrow('Method not found.');
    for (const args of [[], ['2'], [1, 2, 3], [{}]]) {
      await expect(connection.invoke('Add', ...args)).rejects.toThrow(
        'Invalid arguments: expected Add(first, second?).',
      );
    }
    expect(connection.state).toBe('Connected');
  });

  it('learns why a method refused, and nothing of failures', async () => {
    const { hub } = await startMethods();
    const { connection } = await connectClient(hub.url, { transport });
    for (const kind of ['conflict', 'gone', 'too_large', 'precondition_failed']) {
      await expect(connection.invoke('Refuse', kind)).rejects.toThrow(`It is ${kind}.`);
    }
    await expect(connection.invoke('Refuse', 'forbidden')).rejects.toThrow('Unauthorized: It is forbidden.');
    await expect(connection.invoke('Refuse', 'internal')).rejects.toThrow(/The server failed\.$/);
    expect(hub.runtime.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });

  it('takes results one by one', async () => {
    const { hub } = await startMethods();
    const { connection } = await connectClient(hub.url, { transport });
    const counted = taken(connection, 'Count', 5);
    await waitFor(() => counted.state.end !== undefined);
    expect(counted).toMatchObject({ items: [0, 1, 2, 3, 4], state: { end: 'complete' } });
    expect(await connection.invoke('Count', 3)).toBe(3);
    for (const [name, argument, reason] of [
      ['Count', -1, 'It cannot count down.'],
      ['Count', 'x', 'Invalid arguments: expected Count(to).'],
      ['Add', 1, 'Add does not stream.'],
      ['Divide', 1, 'Method not found.'],
    ] as const) {
      const refused = taken(connection, name, argument);
      await waitFor(() => refused.state.end !== undefined);
      expect(refused).toMatchObject({ items: [], state: { end: reason } });
    }
  });

  it('cancels a stream, behind which other invocations run', async () => {
    const { hub, seen } = await startMethods();
    const { connection } = await connectClient(hub.url, { transport });
    const waiting = taken(connection, 'Wait');
    await waitFor(() => waiting.items.length === 1);
    expect(await connection.invoke('Add', 1)).toBe(1);
    waiting.dispose();
    await waitFor(() => seen.cancelled === 1);
    expect(await connection.invoke('Add', 2)).toBe(2);
    expect(waiting.items).toEqual(['waiting']);
    expect(seen.ended).toBe(0);
  });

  it('ends its calls with its connection', async () => {
    const { hub, seen } = await startMethods();
    const { connection } = await connectClient(hub.url, { transport });
    const waiting = taken(connection, 'Wait');
    await waitFor(() => waiting.items.length === 1);
    await connection.stop();
    await waitFor(() => seen.cancelled === 1 && seen.ended === 1);
  });

  it('ends its calls when its token is revoked', async () => {
    const { hub, seen } = await startMethods();
    const { connection, closed } = await connectClient(hub.url, { transport, token: 'ada-1' });
    const waiting = taken(connection, 'Wait');
    await waitFor(() => waiting.items.length === 1);
    hub.refusedTokens.set('ada-1', 'Token refused: it was revoked');
    await waitFor(() => closed.count === 1 && seen.cancelled === 1 && seen.ended === 1);
  });

  it('sends records of the size that the hub declares', async () => {
    const { hub } = await startMethods({
      limits: { recordBytes: mebibyte, messageBytes: 2 * mebibyte, waitingBytes: 2 * mebibyte },
    });
    const { connection } = await connectClient(hub.url, { transport });
    const empty = JSON.stringify({ arguments: [''], invocationId: '0', target: 'Length', type: 1 }).length;
    const most = mebibyte - empty;
    expect(await connection.invoke('Length', 'x'.repeat(most))).toBe(most);
    await expect(connection.invoke('Length', 'x'.repeat(most + 1))).rejects.toThrow();
    await waitFor(() => connection.state === 'Disconnected');
  });
});

describe('a hub of methods', () => {
  it('has callers of its policy alone, at each invocation', async () => {
    const admins = hubMethod({
      name: 'Ask',
      parameters: '',
      arguments: z.tuple([]),
      run: async () => 'answer',
    });
    const hub = await startTestHub({
      methods: new Methods({ path, policy: 'RequireAdministrator', methods: [admins], limiter }),
    });
    const refused = await ask(hub, 'POST', '/negotiate?negotiateVersion=1');
    expect(refused).toMatchObject({ status: 403, text: expect.stringContaining('FORBIDDEN') });
    expect((await openSocket(hub)).isClosed()).toBe(true);
    expect(await ask(hub, 'POST', '/negotiate', { token: 'robot' })).toMatchObject({ status: 401 });
    const { connection } = await connectClient(hub.url, { token: 'chief' });
    expect(await connection.invoke('Ask')).toBe('answer');
    // A later token of the same user, which has the role no more.
    const id = `?id=${await negotiate(hub, 'chief')}`;
    await ask(hub, 'GET', id, { token: 'chief' });
    await ask(hub, 'POST', id, { token: 'chief', body: `${JSON.stringify(handshake)}\u001e` });
    await ask(hub, 'GET', id, { token: 'chief' });
    const invocation = { type: 1, target: 'Ask', arguments: [], invocationId: '1' };
    await ask(hub, 'POST', id, { token: 'chief-demoted', body: `${JSON.stringify(invocation)}\u001e` });
    const { text } = await ask(hub, 'GET', id, { token: 'chief' });
    expect(text).toContain('Unauthorized: You may not do this.');
  });

  it('bounds the streams of a connection, and each has an id of its own', async () => {
    const { hub, seen } = await startMethods();
    const client = await openSocket(hub);
    const wait = (id: string) => ({ type: 4, target: 'Wait', arguments: [], invocationId: id });
    client.send(handshake, wait('1'), wait('2'), wait('3'), wait('4'), wait('5'));
    await waitFor(() => client.records().length === 6);
    expect(seen.running).toBe(4);
    expect(client.records().at(-1)).toEqual({
      type: 3,
      invocationId: '5',
      error: 'The connection has too many streams.',
    });
    client.send({ type: 5, invocationId: '9' }, { type: 5, invocationId: '1' });
    await waitFor(() => client.records().length === 7);
    client.send(wait('6'));
    await waitFor(() => seen.running === 5);
    expect(client.records().filter(({ invocationId }) => invocationId === '1')).toEqual([
      { type: 2, invocationId: '1', item: 'waiting' },
      { type: 3, invocationId: '1' },
    ]);
    client.send(wait('2'));
    await waitFor(client.isClosed);
    expect(client.records().at(-1)).toEqual({ type: 7, error: 'The id of a stream is in use.' });
    await waitFor(() => seen.cancelled === 5);
  });

  it('closes a client that takes no results', async () => {
    const { hub } = await startMethods();
    const id = `?id=${await negotiate(hub)}`;
    await ask(hub, 'GET', id);
    await ask(hub, 'POST', id, { body: `${JSON.stringify(handshake)}\u001e` });
    const flood = { type: 1, target: 'Flood', arguments: [600_000], invocationId: '1' };
    const body = `${JSON.stringify(flood)}\u001e`;
    await ask(hub, 'POST', id, { body });
    await ask(hub, 'POST', id, { body });
    await waitFor(async () => (await ask(hub, 'POST', id, { body })).status === 404);
    expect((await ask(hub, 'GET', id)).text).toContain('The client reads too slowly.');
  });

  it('counts the invocations of a user, whatever they name', async () => {
    const rule = { kind: 'bucket', limit: 3, refillPerSecond: 0.001, key: 'subject' } as const;
    const few = createRateLimiter({ profile: 'production', clock: systemClock(), rules: { Api: rule } });
    const nothing = hubMethod({ name: 'Do', parameters: '', arguments: z.tuple([]), run: async () => 1 });
    const hub = await startTestHub({
      methods: new Methods({ path, policy: 'RequirePlatformUser', methods: [nothing], limiter: few }),
    });
    const [first, second] = [await connectClient(hub.url), await connectClient(hub.url)];
    await first.connection.invoke('Do');
    await second.connection.invoke('Do');
    await expect(first.connection.invoke('Another')).rejects.toThrow('Method not found.');
    await expect(second.connection.invoke('Do')).rejects.toThrow(/too many requests/i);
    const other = await connectClient(hub.url, { token: 'bob' });
    expect(await other.connection.invoke('Do')).toBe(1);
  });

  it('streams without negotiation', async () => {
    const { hub } = await startMethods();
    const options = { skipNegotiation: true, transport: HttpTransportType.WebSockets };
    const { connection } = await connectClient(hub.url, options);
    const counted = taken(connection, 'Count', 2);
    await waitFor(() => counted.state.end === 'complete');
    expect(counted.items).toEqual([0, 1]);
  });
});
