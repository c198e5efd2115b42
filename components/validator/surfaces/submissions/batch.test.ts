import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { Origin } from '../../intake/admission/admission.ts';
import { testKey } from '../../testing/keys.ts';
import { World } from '../../testing/world.ts';
import { answerBatch, maxBatchSize, parseBatch, type SubmissionTexts } from './batch.ts';
import { mountBatch } from './batch-routes.ts';
import { submissionHandlers } from './rpc.ts';

const world = new World();
const app = createHttpServer({ runtime: testRuntime('validator'), title: 'Validator' });
const service: Origin = { isRegisterService: false };
let caller = { kind: 'service', subject: 'a-service' } as Caller;
let port = 0;
let queries = 0;

beforeAll(async () => {
  await world.open();
  await world.begin();
  Object.assign(world.ledger, {
    isSubscribed: async () => {
      queries += 1;
      return false;
    },
  });
  app.addHook('onRequest', async (request) => {
    request.caller = caller;
  });
  mountBatch(app, { admission: world.engine.admission, nowMs: () => Date.now() });
  port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await app.close();
  await world.remove();
});

const textsOf = (all: readonly string[]): SubmissionTexts => ({
  count: all.length,
  at: (index) => all[index] ?? '',
});

const judge = (texts: readonly string[], origin = service) =>
  answerBatch({ admission: world.engine.admission, nowMs: () => Date.now() }, textsOf(texts), origin);

const post = (payload: string | Buffer, type = 'application/x-ndjson') =>
  app.inject({
    method: 'POST',
    url: '/api/v1/transactions/batch',
    payload,
    headers: { 'content-type': type },
  });

/** Runs the event loop for some turns, which completes everything that needs no external event. */
async function nextTurns(count: number): Promise<undefined> {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('the lines of a batch', () => {
  it('are separated by newlines; the last newline starts no line', () => {
    const linesOf = (body: string) => {
      const { count, at } = parseBatch(Buffer.from(body));
      return Array.from({ length: count }, (_, index) => at(index));
    };
    expect(linesOf('{"a":1}\n{"ü":2}')).toEqual(['{"a":1}', '{"ü":2}']);
    expect(linesOf('{"a":1}\n\n{}\n')).toEqual(['{"a":1}', '', '{}']);
    expect(linesOf('\n')).toEqual(['']);
  });

  it('are at least one, bounded, and valid UTF-8', () => {
    expect(parseBatch(Buffer.from('{}\n'.repeat(maxBatchSize))).count).toBe(maxBatchSize);
    expect(() => parseBatch(Buffer.from('{}\n'.repeat(maxBatchSize + 1)))).toThrow('at most 1000');
    expect(() => parseBatch(Buffer.alloc(0))).toThrow('empty');
    expect(() => parseBatch(Buffer.from([0x7b, 0xff, 0x7d]))).toThrow('UTF-8');
  });
});

describe('a batch', () => {
  it('answers each transaction as if it had been sent alone', async () => {
    const [first, second] = [world.sign(), world.sign()];
    const foreign = world.sign({ registerId: 'fe'.repeat(16) });
    const tampered = world.sign({ tamper: { PayloadHash: '00'.repeat(32) } });
    const texts = [first.text, 'no json', tampered.text, foreign.text, first.text, second.text, ''];
    const answers = await judge(texts);
    expect(answers.map(({ status, body }) => [status, body['code'] ?? body['transactionId']])).toEqual([
      [200, first.txId],
      [400, 'VAL_STRUCT_012'],
      [400, 'VAL_HASH_001'],
      [400, 'BATCH_REGISTER'],
      [200, first.txId],
      [200, second.txId],
      [400, 'VAL_STRUCT_012'],
    ]);
    expect(answers[2]?.body).toMatchObject({ isValid: false, errors: [{ field: 'PayloadHash' }] });
    const alone = await world.submit(tampered.text);
    const { timestamp: _, ...body } = alone.body;
    expect(answers[2]).toMatchObject({ status: alone.status, body });
    await world.sealed(3);
    expect(world.ledger.sealed.has(second.txId)).toBe(true);
    expect(world.ledger.sealed.has(tampered.txId)).toBe(false);
  });

  it('may contain chains of transactions that span several admission batches', async () => {
    const texts: string[] = [];
    let previous: string | undefined;
    for (let n = 0; n < 600; n += 1) {
      const next = world.sign({ key: testKey(30 + (n % 4)), previous, payload: { link: n } });
      texts.push(next.text);
      previous = next.txId;
    }
    const before = world.ledger.sealed.size;
    expect(new Set((await judge(texts)).map(({ status }) => status))).toEqual(new Set([200]));
    await world.sealed(before + texts.length);
  });

  it('waits for a predecessor that is in flight', async () => {
    world.register.keys.discard();
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { lookup } = world.ledger;
    world.ledger.lookup = async (queries) => {
      asked.resolve();
      await gate.promise;
      return lookup(queries);
    };
    const parent = world.sign({ payload: { slow: 'parent' } });
    const first = judge([parent.text]);
    await asked.promise;
    world.ledger.lookup = lookup;
    const child = judge([world.sign({ previous: parent.txId, payload: { slow: 'child' } }).text]);
    const answeredFirst = await Promise.race([child, nextTurns(20)]);
    expect(answeredFirst).toBeUndefined();
    gate.resolve();
    expect([...(await first), ...(await child)].map(({ status }) => status)).toEqual([200, 200]);
  });

  it('yields to other work while it is read', async () => {
    const texts = Array.from({ length: maxBatchSize }, (_, n) => `{"not":${n}}`);
    let turns = 0;
    let done = false;
    const count = () => {
      turns += 1;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    await judge(texts);
    done = true;
    expect(turns).toBeGreaterThan(10);
  });

  it('is read completely before the next one, also after a failed one', async () => {
    const { admission } = world.engine;
    const read: string[] = [];
    const recording = {
      readSequentially: (act: () => Promise<void>) => admission.readSequentially(act),
      submit: (text: string, origin: Origin) => {
        read.push(text);
        return admission.submit(text, origin);
      },
    };
    await expect(admission.readSequentially(() => Promise.reject(new Error('unread')))).rejects.toThrow(
      'unread',
    );
    const batches = ['a', 'b', 'c'].map((name) => Array.from({ length: 200 }, (_, n) => `${name}${n}`));
    await Promise.all(
      batches.map((texts) =>
        answerBatch({ admission: recording, nowMs: () => Date.now() }, textsOf(texts), service),
      ),
    );
    expect(read).toEqual(batches.flat());
  });

  it('forwards foreign transactions with bounded concurrency', async () => {
    const registerId = 'ab'.repeat(16);
    const texts = Array.from({ length: 200 }, () => world.sign({ registerId }).text);
    const seen = { now: 0, most: 0, texts: new Set<string>() };
    const answers = await answerBatch(
      {
        admission: world.engine.admission,
        nowMs: () => Date.now(),
        forward: async (text) => {
          seen.now += 1;
          seen.most = Math.max(seen.most, seen.now);
          seen.texts.add(text);
          await new Promise((resolve) => setImmediate(resolve));
          seen.now -= 1;
          if (seen.texts.size % 3 === 0) throw new AppError('unavailable', 'VALIDATOR_UNAVAILABLE', 'away');
          return { status: 200, body: { transactionId: text }, retryAfterSeconds: 0 };
        },
      },
      textsOf(texts),
      service,
    );
    expect(seen.texts).toEqual(new Set(texts));
    expect(seen.most).toBe(64);
    for (const [index, { status, body }] of answers.entries())
      expect([status, body['transactionId'] ?? body['code']]).toEqual(
        status === 200 ? [200, texts[index]] : [503, 'VALIDATOR_UNAVAILABLE'],
      );
  });

  it("checks a user's subscription once", async () => {
    const before = queries;
    const texts = Array.from({ length: 100 }, () => world.sign().text);
    const person = { ...service, person: { organizationId: 'nobody' } };
    const answers = await judge(texts, person);
    expect(new Set(answers.map(({ body }) => body['code']))).toEqual(new Set(['SUBSCRIPTION_REQUIRED']));
    // once per chunk: a negative answer is not cached
    expect(queries - before).toBeLessThanOrEqual(2);
  });
});

describe('POST /api/v1/transactions/batch', () => {
  it('answers line by line', async () => {
    const [one, two] = [world.sign(), world.sign()];
    const answer = await post(`${one.text}\n{}\r\n${two.text}\n`);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({
      accepted: 2,
      refused: 1,
      results: [
        { status: 200, isValid: true, added: true, transactionId: one.txId },
        { status: 400, isValid: false, added: false },
        { status: 200, transactionId: two.txId },
      ],
    });
  });

  it('gives Retry-After for each line', async () => {
    await world.engine.setMode(world.register.id, 'Paused');
    await world.engine.setMode(world.register.id, 'Stopped');
    const { results } = (await post(world.sign().text)).json();
    expect(results).toMatchObject([{ status: 503, retryAfterSeconds: 5 }]);
    await world.engine.setMode(world.register.id, 'Running');
  });

  it('accepts NDJSON only, up to a number of lines', async () => {
    const { text } = world.sign();
    const refused = async (payload: string | Buffer, type?: string) => {
      const answer = await post(payload, type);
      return [answer.statusCode, answer.json().code];
    };
    expect(await refused(text, 'application/json')).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(await refused('')).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused(Buffer.from([0xff]))).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused('{}\n'.repeat(1_001))).toEqual([413, 'BATCH_TOO_LARGE']);
    expect(await refused('x'.repeat(1_048_577))).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  it('checks the subscription of a user', async () => {
    const before = caller;
    caller = { kind: 'user', organizationId: 'nobody' } as Partial<Caller> as Caller;
    const { accepted, results } = (await post(world.sign().text)).json();
    caller = before;
    expect([accepted, results[0].status, results[0].code]).toEqual([0, 403, 'SUBSCRIPTION_REQUIRED']);
  });

  it('accepts nothing of a body that does not end', async () => {
    const { register } = world;
    await waitFor(() => register.pool.isEmpty && register.facts.unstored === 0, { what: 'a quiet register' });
    const before = world.ledger.sealed.size;
    const cut = Array.from({ length: 3 }, () => world.sign());
    const lines = cut.map(({ text }) => text).join('\n');
    const socket = connect(port, '127.0.0.1');
    const head = `POST /api/v1/transactions/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n`;
    socket.write(`${head}content-length: ${lines.length + 10}\r\n\r\n${lines}`, () => socket.destroy());
    await waitFor(() => socket.closed, { what: 'the connection to end' });
    const whole = world.sign();
    expect((await post(whole.text)).json().accepted).toBe(1);
    await world.sealed(before + 1);
    for (const { txId } of cut) expect(world.register.pool.find(txId)).toBeUndefined();
    expect(world.ledger.sealed.size).toBe(before + 1);
  });
});

describe('SubmitBatches', () => {
  const handlers = () =>
    submissionHandlers({
      admission: world.engine.admission,
      registers: { get: () => undefined, find: async () => undefined },
      nowMs: () => Date.now(),
    });
  const context = {
    peer: { spiffeId: 'spiffe://x', clientId: 'validator-1' },
    signal: new AbortController().signal,
  };
  async function answered(...batches: readonly (readonly string[])[]) {
    async function* requests() {
      for (const texts of batches) {
        yield { submissionsJson: texts.map((text) => Buffer.from(text)), forwarded: true };
      }
    }
    const answers: (readonly [number, unknown])[][] = [];
    for await (const batch of handlers().submitBatches(requests() as never, context)) {
      const each = batch.answers ?? [];
      answers.push(
        each.map(({ status = 0, bodyJson }) => [
          status,
          JSON.parse(Buffer.from(bodyJson ?? []).toString()).transactionId,
        ]),
      );
    }
    return answers;
  }

  it('answers each batch in order before the next one', async () => {
    const drafts = Array.from({ length: 5 }, () => world.sign());
    const texts = drafts.map(({ text }) => text);
    expect(await answered(texts.slice(0, 3), ['no json', ...texts.slice(3)])).toEqual([
      drafts.slice(0, 3).map(({ txId }) => [200, txId]),
      [[400, undefined], ...drafts.slice(3).map(({ txId }) => [200, txId])],
    ]);
  });

  it('ends with a malformed batch', async () => {
    await expect(answered([])).rejects.toMatchObject({ kind: 'invalid' });
    const many = Array.from({ length: maxBatchSize + 1 }, () => '{}');
    await expect(answered(many)).rejects.toMatchObject({ code: 'BATCH_TOO_LARGE' });
  });
});
