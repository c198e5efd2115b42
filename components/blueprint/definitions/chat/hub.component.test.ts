import { randomUUID } from 'node:crypto';
import type { HttpTransportType } from '@microsoft/signalr';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectClient, handshake, transports } from '#kit/hub/hub.fixture.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { startWorld, type World } from '../../testing/world.ts';
import { createPermit, openChat, smallDraft as small } from './chat.fixture.ts';

const mebibyte = 1024 * 1024;
const path = (id: string) => `/api/blueprints/${id}`;

let world: World;
let url: string;
let made = 0;

beforeAll(async () => {
  world = await startWorld('blueprint_chat');
  url = `http://127.0.0.1:${await world.listen()}/hubs/chat`;
});
afterAll(() => world.stop());

const open = (token?: string, transport?: HttpTransportType) => openChat(url, token, transport);

async function draft() {
  made += 1;
  return await createPermit(world, `permit-${made}`);
}

const stored = async (id: string, token = 'admin') => (await world.call('GET', path(id), { token })).body;

describe.each(transports)('without a language model, over %s', (_name, transport) => {
  it('a draft is designed, saved and exported', async () => {
    const { id, ...body } = await draft();
    const chat = await open('designer', transport);
    const session = await chat.start(id);
    expect(chat.heard).toEqual([{ name: 'SessionStarted', args: [session, { ...body, id }, 0] }]);
    await chat.invoke('SendMessage', session, 'Add a step.');
    await waitFor(() => chat.of('SessionError').length === 1);
    expect(chat.of('SessionError')).toEqual([
      ['AI_UNAVAILABLE', expect.stringContaining('no language model')],
    ]);
    expect(chat.of('MessageComplete')).toEqual([]);
    const changed = { ...body, id, title: 'Changed in a chat' };
    expect(await chat.invoke('SaveBlueprint', session, changed)).toBe(id);
    expect(await stored(id)).toMatchObject({ title: 'Changed in a chat', version: 2 });
    expect(JSON.parse(await chat.invoke('ExportBlueprint', session, 'json'))).toEqual(changed);
    expect(load(await chat.invoke('ExportBlueprint', session, 'yaml'))).toEqual(changed);
    expect(await chat.invoke('EndSession', session)).toBeNull();
    await expect(chat.invoke('SaveBlueprint', session)).rejects.toThrow('the session has ended');
    await chat.stop();
  });
});

describe('a session', () => {
  it('about a new draft stores it with the first save, and changes it with the next ones', async () => {
    const chat = await open();
    const session = await chat.start();
    expect(chat.of('SessionStarted')).toEqual([[session, null, 0]]);
    for (const [method, ...args] of [['SaveBlueprint'], ['ExportBlueprint', 'json']] as const) {
      await expect(chat.invoke(method, session, ...args)).rejects.toThrow(
        'the session has no definition yet',
      );
    }
    const { id: _id, ...unnamed } = small;
    const id = await chat.invoke('SaveBlueprint', session, unnamed);
    expect(await stored(id)).toMatchObject({ ...unnamed, id, version: 1 });
    expect(JSON.parse(await chat.invoke('ExportBlueprint', session, 'json'))).toEqual({ ...unnamed, id });
    expect(await chat.invoke('SaveBlueprint', session)).toBe(id);
    expect(await chat.invoke('SaveBlueprint', session, null)).toBe(id);
    expect(await stored(id)).toMatchObject({ version: 3 });
    await expect(chat.invoke('SaveBlueprint', session, small)).rejects.toThrow('cannot be changed');
  });

  it('does not overwrite what was changed elsewhere', async () => {
    const { id, ...body } = await draft();
    const chat = await open();
    const session = await chat.start(id);
    await world.call('PUT', path(id), { body: { ...body, id, title: 'Elsewhere' } });
    await expect(chat.invoke('SaveBlueprint', session)).rejects.toThrow('was changed since');
    await world.call('DELETE', path(id));
    await expect(chat.invoke('SaveBlueprint', session)).rejects.toThrow(
      /Unauthorized: the blueprint does not/,
    );
  });

  it('is one of its connection alone, and the only one', async () => {
    const chat = await open();
    const session = await chat.start();
    await expect(chat.start()).rejects.toThrow('the connection has a session; end it first');
    const other = await open();
    for (const [method, ...args] of [
      ['SendMessage', 'x'],
      ['CancelGeneration'],
      ['SaveBlueprint', small],
      ['ExportBlueprint', 'json'],
      ['EndSession'],
    ] as const) {
      for (const id of [session, randomUUID()]) {
        await expect(other.invoke(method, id, ...args)).rejects.toThrow(
          /^.*the session has ended, or is one/,
        );
      }
    }
    await chat.invoke('EndSession', session);
    await expect(chat.invoke('EndSession', session)).rejects.toThrow('the session has ended');
    expect(await chat.start()).not.toBe(session);
  });

  it('has arguments of the declared number and types', async () => {
    const chat = await open();
    const session = await chat.start();
    const wrong: Readonly<Record<string, readonly unknown[][]>> = {
      'StartSession(draftId?)': [[1], [''], ['../x'], ['a\u0000b'], ['x'.repeat(65)], [{}], ['aa', 'bb']],
      'SendMessage(sessionId, message)': [
        [],
        [session],
        [session, ''],
        [session, ' \n'],
        [session, 'x'.repeat(10_001)],
        [session, '\ud800'],
        [session, 1],
        [session, null],
        ['x', 'y'],
        [session, 'x', 'y'],
      ],
      'CancelGeneration(sessionId)': [[], [1], ['x'], [session, 1]],
      'SaveBlueprint(sessionId, definition?)': [
        [],
        [session, 'x'],
        [session, 1],
        [session, []],
        [session, small, small],
        [{}, small],
      ],
      "ExportBlueprint(sessionId, 'json' | 'yaml')": [
        [session],
        [session, 'xml'],
        [session, 'JSON'],
        ['x', 'json'],
      ],
      'EndSession(sessionId)': [[], [null], [session, session]],
    };
    for (const [signature, lists] of Object.entries(wrong)) {
      const [method = ''] = signature.split('(');
      for (const args of lists) {
        const reason = `Invalid arguments: expected ${signature}.`;
        await expect(chat.invoke(method, ...args), JSON.stringify(args)).rejects.toThrow(reason);
      }
    }
    for (const method of ['SubscribeToWallet', 'startSession', 'toString', '__proto__']) {
      await expect(chat.invoke(method, session)).rejects.toThrow('Method not found.');
    }
    expect(chat.heard).toHaveLength(1);
  });

  it('takes no definition that the routes refuse', async () => {
    const chat = await open();
    const session = await chat.start();
    const save = (text: string) => chat.invoke('SaveBlueprint', session, JSON.parse(text));
    await expect(save('{"title":"x","__proto__":{"a":1}}')).rejects.toThrow('replaces a prototype');
    await expect(save('{"title":"x","a":{"constructor":{"prototype":1}}}')).rejects.toThrow('a prototype');
    await expect(save('{}')).rejects.toThrow('definition.title: ');
    await expect(save(`{"title":"x","a":"${'y'.repeat(524_288)}"}`)).rejects.toThrow('524288 bytes');
    await expect(chat.invoke('ExportBlueprint', session, 'json')).rejects.toThrow('no definition yet');
    const { id } = await draft();
    await expect(chat.invoke('SaveBlueprint', session, { ...small, id })).rejects.toThrow('is taken');
    const inflated = { ...small, id: 'inflated', deep: Array(200_000).fill(1) };
    await chat.invoke('SaveBlueprint', session, inflated);
    // On a busy machine the time of the thread may end first.
    for (const format of ['json', 'yaml']) {
      await expect(chat.invoke('ExportBlueprint', session, format)).rejects.toThrow(
        /1048576 bytes|takes too long/,
      );
    }
    expect(Object.prototype).not.toHaveProperty('a');
  });
});

describe('a caller', () => {
  it.each([
    ['user', 403],
    ['citizen', 403],
    ['service', 401],
    ['nameless', 401],
  ])('that is %s gets no connection', async (token, status) => {
    const answered = await world.call('POST', '/hubs/chat/negotiate?negotiateVersion=1', { token });
    expect(answered.status).toBe(status);
    await expect(connectClient(url, { token, skipNegotiation: true })).rejects.toThrow();
  });

  it('opens no draft of another organisation', async () => {
    const { id } = await draft();
    const chat = await open('stranger');
    for (const draftId of [id, 'none']) {
      await expect(chat.start(draftId)).rejects.toThrow('Unauthorized: the blueprint does not exist in your');
    }
    expect(chat.heard).toEqual([]);
  });

  it('whose later token is one of another organisation has no session of the earlier one', async () => {
    const answered = await world.call('POST', '/hubs/chat/negotiate?negotiateVersion=1');
    const at = `/hubs/chat?id=${answered.body.connectionToken}`;
    const send = async (token: string, record: object) => {
      await world.call('POST', at, { token, text: `${JSON.stringify(record)}\u001e` });
      return (await world.call('GET', at)).bytes.toString();
    };
    await world.call('GET', at);
    await send('admin', handshake);
    const call = (target: string, ...args: unknown[]) => ({
      type: 1,
      target,
      arguments: args,
      invocationId: '1',
    });
    const started = (await send('admin', call('StartSession'))).split('\u001e');
    const session: unknown = JSON.parse(started.find((one) => one.includes('SessionStarted')) ?? '')
      .arguments[0];
    const saved = await send('later', call('SaveBlueprint', session, { ...small, id: 'moved' }));
    expect(saved).toContain('the session has ended');
    expect((await world.call('GET', path('moved'), { token: 'stranger' })).status).toBe(404);
    expect(await send('later', call('StartSession'))).toContain('SessionStarted');
    await world.call('DELETE', at);
  });

  it('has four connections, of which each is closed with a record over 1 MiB', async () => {
    const chats = [await open(), await open(), await open(), await open()];
    await expect(open()).rejects.toThrow(/429/);
    const [chat] = chats;
    const session = await chat?.start();
    const record = { arguments: [session, { ...small, id: 'big' }, ''], invocationId: '1' };
    const empty = JSON.stringify({ ...record, target: 'SaveBlueprint', type: 1 }).length;
    const save = (bytes: number) =>
      chat?.invoke('SaveBlueprint', session, { ...small, id: 'big' }, 'x'.repeat(bytes - empty));
    await expect(save(mebibyte)).rejects.toThrow('Invalid arguments');
    await expect(save(mebibyte + 1)).rejects.toThrow(/exceeds 1048576 bytes/);
    await waitFor(() => chat?.closed.count === 1);
    await Promise.all(chats.map(({ stop }) => stop()));
  });
});
