import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { testKey } from '../../testing/keys.ts';
import { genesisSubmission, signedSubmission } from '../../testing/submissions.ts';
import { createForward } from './forward.ts';

const registerId = '0123456789abcdef0123456789abcdef';
const notHere = new AppError('not_found', 'REGISTER_NOT_FOUND', 'not validated here');
const stopped = new AppError('unavailable', 'REGISTER_NOT_READY', 'stopped');
const text = signedSubmission({ registerId, key: testKey(2), createdAtMs: 1_000 }).text;
const service = { isRegisterService: false };
const person = { isRegisterService: false, person: { organizationId: 'org' } };

const ok: Answer = { status: 200, body: { added: true }, retryAfterSeconds: 0 };
const busy: Answer = { status: 503, body: { code: 'REGISTER_NOT_READY' }, retryAfterSeconds: 5 };

function begin(
  answers: Readonly<Record<string, Answer>>,
  members: readonly string[] | undefined = ['a', 'b', 'c'],
) {
  const asked: string[] = [];
  let subscribed = true;
  let queries = 0;
  const clock = manualClock(1_000);
  const forward = createForward({
    validatorId: 'c',
    clock,
    peerClients: {
      submit: async (validatorId, submission) => {
        asked.push(validatorId);
        expect(Buffer.from(submission).toString()).toBe(text);
        const answer = answers[validatorId];
        if (answer === undefined) throw new AppError('unavailable', 'UNAVAILABLE', 'away');
        return answer;
      },
    },
    subscriptions: {
      assertSubscribed: async () => {
        if (!subscribed) throw new AppError('forbidden', 'SUBSCRIPTION_REQUIRED', 'no subscription');
      },
    },
    findMembers: async () => {
      queries += 1;
      return members;
    },
  });
  const unsubscribe = () => {
    subscribed = false;
  };
  return { forward, asked, clock, unsubscribe, queries: () => queries };
}

describe('forwarding a submission', () => {
  it('tries the member that answered last first', async () => {
    const { forward, asked } = begin({ b: ok });
    expect(await forward(text, service, notHere)).toBe(ok);
    expect(asked).toEqual(['a', 'b']);
    await forward(text, service, notHere);
    expect(asked).toEqual(['a', 'b', 'b']);
  });

  it("returns a member's refusal unchanged", async () => {
    const refusal: Answer = { status: 422, body: { code: 'VAL_CHAIN_001' }, retryAfterSeconds: 0 };
    const { forward, asked } = begin({ a: refusal, b: ok });
    expect(await forward(text, service, notHere)).toBe(refusal);
    expect(asked).toEqual(['a']);
  });

  it('tries other members when one is unavailable', async () => {
    const { forward } = begin({ a: busy, b: ok });
    expect(await forward(text, service, notHere)).toBe(ok);
    expect(await begin({ a: busy, b: busy }).forward(text, service, notHere)).toBe(busy);
  });

  it('fails as unavailable when no member is reachable', async () => {
    const { forward } = begin({});
    await expect(forward(text, service, notHere)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'VALIDATOR_UNAVAILABLE',
    });
    expect(await forward(text, service, stopped)).toBeUndefined();
  });

  it('happens once', async () => {
    const { forward, asked } = begin({ a: ok });
    expect(await forward(text, { ...service, isForwarded: true }, notHere)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('keeps every other refusal', async () => {
    const { forward, asked } = begin({ a: ok });
    for (const code of ['VAL_SIG_002', 'VAL_CHAIN_TRANSIENT', 'MEMPOOL_FULL'])
      expect(await forward(text, service, new AppError('unavailable', code, code))).toBeUndefined();
    expect(await forward(text, service, new Error('bug'))).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('does nothing for an unknown register or one that only this validator has', async () => {
    const alone = createForward({
      validatorId: 'c',
      clock: manualClock(0),
      peerClients: { submit: async () => ok },
      subscriptions: { assertSubscribed: async () => {} },
      findMembers: async () => undefined,
    });
    expect(await alone(text, service, notHere)).toBeUndefined();
    expect(await begin({ a: ok }, ['c']).forward(text, service, stopped)).toBeUndefined();
  });

  it('checks the subscription of a user before another validator sees the transaction', async () => {
    const { forward, asked, unsubscribe } = begin({ a: ok });
    expect(await forward(text, person, notHere)).toBe(ok);
    unsubscribe();
    await expect(forward(text, person, notHere)).rejects.toMatchObject({ code: 'SUBSCRIPTION_REQUIRED' });
    expect(asked).toEqual(['a']);
  });

  it('is limited to the register that its origin may name', async () => {
    const { forward, asked, queries } = begin({ a: ok });
    const assertRegister = () => {
      throw new AppError('invalid', 'BATCH_REGISTER', 'another register');
    };
    await expect(forward(text, { ...service, assertRegister }, stopped)).rejects.toMatchObject({
      code: 'BATCH_REGISTER',
    });
    expect([asked, queries()]).toEqual([[], 0]);
  });

  it('never applies to genesis', async () => {
    const { forward, asked } = begin({ a: ok });
    const genesis = genesisSubmission({
      registerId,
      owner: testKey(1),
      system: testKey(9),
      validators: [{ validatorId: 'validator-0', key: testKey(7) }],
      createdAtMs: 1_000,
      policy: undefined,
    });
    expect(await forward(genesis.text, service, notHere)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('looks the members up at most once a second', async () => {
    const { forward, clock, queries } = begin({ a: ok });
    await forward(text, service, notHere);
    await forward(text, service, notHere);
    expect(queries()).toBe(1);
    clock.advance(1_001);
    await forward(text, service, notHere);
    expect(queries()).toBe(2);
  });
});
