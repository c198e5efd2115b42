import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { transports } from '#kit/hub/hub.fixture.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { startWorld, type World } from '../../testing/world.ts';
import { createPermit, openChat, smallDraft as small } from './chat.fixture.ts';
import type { ChatOutput, ChatTurn } from './provider.ts';

let world: World;
let url: string;

beforeAll(async () => {
  world = await startWorld('blueprint_chat_answers');
  url = `http://127.0.0.1:${await world.listen()}/hubs/chat`;
});
afterAll(() => world.stop());
beforeEach(() => {
  world.chat.turns.length = 0;
});

const chunk = (text: string) => ({ kind: 'chunk', text }) as const;

/** Replaces the provider by a generator. */
function answer(give: (turn: ChatTurn) => AsyncGenerator<ChatOutput>): void {
  world.chat.double.answer = give;
}

/** Gives a chunk, and nothing more until the answer is not wanted any more. */
function hang() {
  const seen = { running: 0, ended: 0 };
  answer(async function* ({ signal }) {
    seen.running += 1;
    yield chunk('Begun');
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => resolve());
    await promise;
    seen.ended += 1;
    yield chunk(' too late');
  });
  return seen;
}

/** Answers with a text, word by word. */
function say(text: string): void {
  answer(async function* () {
    for (const word of text.split(/(?<= )/)) yield chunk(word);
  });
}

describe.each(transports)('an answer over %s', (_name, transport) => {
  it('comes in chunks, with tools and changed definitions, and is not stored until it is saved', async () => {
    const body = await createPermit(world, `answered-${transport}`);
    const changed = { ...body, title: 'With a review' };
    const faulty = { ...body, actions: [] };
    answer(async function* ({ messages, definition, judge }) {
      yield chunk(`${messages.length} message `);
      yield { kind: 'toolExecuting', tool: 'change', arguments: { title: 'With a review' } };
      const { findings } = await judge(changed);
      yield { kind: 'definition', definition: changed };
      yield { kind: 'toolExecuted', tool: 'change' };
      yield { kind: 'toolExecuted', tool: 'check', error: `it has ${findings.length} findings` };
      yield { kind: 'definition', definition: faulty };
      yield chunk(`about ${String(definition?.['title'])}.`);
    });
    const chat = await openChat(url, 'designer', transport);
    const session = await chat.start(body.id);
    const messageId = await chat.invoke('SendMessage', session, 'Add a review, please.');
    await waitFor(() => chat.of('MessageComplete').length === 1);
    expect(chat.heard.slice(1)).toEqual([
      { name: 'ReceiveChunk', args: ['1 message '] },
      { name: 'ToolExecuting', args: ['change', { title: 'With a review' }] },
      {
        name: 'BlueprintUpdated',
        args: [changed, { isValid: true, validationResults: [], warnings: expect.any(Array) }],
      },
      { name: 'ToolExecuted', args: ['change', true, null] },
      { name: 'ToolExecuted', args: ['check', false, expect.stringMatching(/^it has \d+ findings$/)] },
      {
        name: 'BlueprintUpdated',
        args: [faulty, { isValid: false, validationResults: expect.any(Array), warnings: expect.any(Array) }],
      },
      { name: 'ReceiveChunk', args: ['about Temporary site permit.'] },
      { name: 'MessageComplete', args: [messageId] },
    ]);
    const path = `/api/blueprints/${body.id}`;
    expect((await world.call('GET', path)).body).toMatchObject({ version: 1, title: body.title });
    await chat.invoke('SaveBlueprint', session);
    expect((await world.call('GET', path)).body).toMatchObject({ version: 2, actions: [] });
    await chat.stop();
  });

  it('is taken as a stream, and cancelled as one', async () => {
    say('Three words long');
    const chat = await openChat(url, 'designer', transport);
    const session = await chat.start();
    const whole = chat.stream('SendMessage', session, 'Hello');
    await waitFor(() => whole.end !== undefined);
    expect([whole.items, whole.end]).toEqual([['Three ', 'words ', 'long'], 'complete']);
    expect(chat.names()).toEqual(['SessionStarted', 'MessageComplete']);
    const seen = hang();
    const cancelled = chat.stream('SendMessage', session, 'And more?');
    await waitFor(() => cancelled.items.length === 1);
    cancelled.dispose();
    await waitFor(() => seen.ended === 1 && chat.of('MessageComplete').length === 2);
    expect(cancelled.items).toEqual(['Begun']);
    await chat.stop();
  });

  it('is cancelled by CancelGeneration, behind which the session continues', async () => {
    const seen = hang();
    const chat = await openChat(url, 'designer', transport);
    const session = await chat.start();
    await expect(chat.invoke('CancelGeneration', session)).rejects.toThrow('no message is being answered');
    const messageId = await chat.invoke('SendMessage', session, 'Hello');
    await waitFor(() => chat.text() === 'Begun');
    for (const [method, ...args] of [
      ['SendMessage', 'Again'],
      ['SaveBlueprint', small],
    ] as const) {
      await expect(chat.invoke(method, session, ...args)).rejects.toThrow('a message is being answered');
    }
    expect(await chat.invoke('CancelGeneration', session)).toBeNull();
    await waitFor(() => seen.ended === 1 && chat.of('MessageComplete').length === 1);
    expect(chat.of('MessageComplete')).toEqual([[messageId]]);
    expect([chat.text(), chat.of('SessionError')]).toEqual(['Begun', []]);
    await expect(chat.invoke('CancelGeneration', session)).rejects.toThrow('no message is being answered');
    say('Fine.');
    await chat.invoke('SendMessage', session, 'Continue');
    await waitFor(() => chat.of('MessageComplete').length === 2);
    expect(world.chat.turns.at(-1)?.messages).toEqual([
      { role: 'user', text: 'Hello' },
      { role: 'assistant', text: 'Begun' },
      { role: 'user', text: 'Continue' },
    ]);
    await chat.stop();
  });

  it.each(['connection', 'token', 'session'])('ends with its %s', async (what) => {
    const seen = hang();
    const chat = await openChat(url, 'designer', transport);
    const session = await chat.start();
    await chat.invoke('SendMessage', session, 'Hello');
    await waitFor(() => chat.text() === 'Begun');
    if (what === 'connection') await chat.stop();
    if (what === 'token') world.chat.revoked.add('designer');
    if (what === 'session') await chat.invoke('EndSession', session);
    await waitFor(() => seen.ended === 1 && world.chat.turns.at(-1)?.signal.aborted === true);
    if (what === 'token') await waitFor(() => chat.closed.count === 1);
    world.chat.revoked.clear();
    expect(chat.text()).toBe('Begun');
    await chat.stop();
  });
});

describe('an answer', () => {
  it('that fails is a SessionError, and its turn is no part of the conversation', async () => {
    const chat = await openChat(url);
    const session = await chat.start();
    let errors = 0;
    const fail = async (give: (turn: ChatTurn) => AsyncGenerator<ChatOutput>) => {
      answer(give);
      await chat.invoke('SendMessage', session, 'Hello');
      errors += 1;
      await waitFor(() => chat.of('SessionError').length === errors);
      return chat.of('SessionError').at(-1);
    };
    const logged = () =>
      world.chat.lines.filter(({ msg }) => msg === 'the provider of the chat failed').length;
    const refused = await fail(async function* () {
      yield chunk('So');
      throw new AppError('rate_limited', 'MODEL_BUSY', 'The model is busy; try again.');
    });
    expect(refused).toEqual(['MODEL_BUSY', 'The model is busy; try again.']);
    expect(logged()).toBe(0);
    const broken = await fail(async function* () {
      yield chunk('So');
      throw new Error('a secret of the model');
    });
    expect(broken).toEqual(['AI_UNAVAILABLE', 'the language model failed; try again']);
    expect(logged()).toBe(1);
    for (const definition of [{}, JSON.parse('{"title":"x","__proto__":{}}'), { title: 'x', id: '../x' }]) {
      const invalid = await fail(async function* () {
        yield { kind: 'definition', definition };
      });
      expect(invalid?.[0]).toBe('BLUEPRINT_INVALID');
    }
    const endless = await fail(async function* () {
      for (;;) yield chunk('word '.repeat(1_000));
    });
    expect(endless?.[0]).toBe('ANSWER_LIMIT');
    const silent = await fail(async function* () {
      for (;;) yield { kind: 'toolExecuted', tool: 't' };
    });
    expect(silent?.[0]).toBe('ANSWER_LIMIT');
    expect([chat.of('BlueprintUpdated'), chat.of('MessageComplete')]).toEqual([[], []]);
    say('Fine.');
    await chat.invoke('SendMessage', session, 'Hello');
    await waitFor(() => chat.of('MessageComplete').length === 1);
    expect(world.chat.turns.at(-1)?.messages).toEqual([{ role: 'user', text: 'Hello' }]);
    await chat.stop();
  });

  it('that fails ends its stream with the reason', async () => {
    answer(async function* () {
      yield chunk('So');
      throw new AppError('rate_limited', 'MODEL_BUSY', 'The model is busy; try again.');
    });
    const chat = await openChat(url);
    const streamed = chat.stream('SendMessage', await chat.start(), 'Hello');
    await waitFor(() => streamed.end !== undefined);
    expect([streamed.items, streamed.end]).toEqual([['So'], 'The model is busy; try again.']);
    expect(chat.of('SessionError')).toHaveLength(1);
    await chat.stop();
  });

  it('that hangs, whether it heeds its signal or not, is given up', async () => {
    const chat = await openChat(url);
    const session = await chat.start();
    answer(async function* () {
      yield chunk('Begun');
      await new Promise(() => undefined);
    });
    world.chat.double.answerMs = 300;
    await chat.invoke('SendMessage', session, 'Hello');
    await waitFor(() => chat.of('SessionError').length === 1);
    world.chat.double.answerMs = 60_000;
    expect(chat.of('SessionError')[0]?.[0]).toBe('ANSWER_LIMIT');
    await chat.invoke('SendMessage', session, 'Hello');
    await waitFor(() => chat.text() === 'BegunBegun');
    await chat.invoke('CancelGeneration', session);
    await waitFor(() => chat.of('MessageComplete').length === 1);
    await chat.stop();
  });

  it('is given to 100 messages of a session, with warnings from the 90th on', async () => {
    say('Fine.');
    const chat = await openChat(url);
    const session = await chat.start();
    for (let sent = 1; sent <= 100; sent += 1) {
      await chat.invoke('SendMessage', session, `Message ${sent}`);
      await waitFor(() => chat.of('MessageComplete').length === sent);
      expect(chat.of('MessageLimitWarning')).toHaveLength(Math.max(0, sent - 89));
    }
    expect(chat.of('MessageLimitWarning').flat()).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    await expect(chat.invoke('SendMessage', session, 'One more')).rejects.toThrow('start another one');
    expect(chat.of('SessionError')).toEqual([['MESSAGE_LIMIT', expect.any(String)]]);
    expect(world.chat.turns).toHaveLength(100);
    expect(world.chat.turns.at(-1)?.messages).toHaveLength(199);
    await chat.invoke('EndSession', session);
    await chat.invoke('SendMessage', await chat.start(), 'Hello again');
    await waitFor(() => chat.of('MessageComplete').length === 101);
    expect(world.chat.turns.at(-1)?.messages).toHaveLength(1);
    await chat.stop();
  });
});
