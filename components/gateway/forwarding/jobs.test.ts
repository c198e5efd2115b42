import { describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { startProbes } from './jobs.ts';

type Answer = (signal: AbortSignal) => Promise<number>;

const healthy: Answer = async () => 200;
const broken: Answer = async () => 503;
const gone: Answer = () => Promise.reject(new Error('connection refused'));
const silent: Answer = (signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

interface Endpoint {
  readonly answer: Answer;
  readonly isBusy?: boolean;
}

/** A service whose endpoints answer probes as given. */
function service(...endpoints: readonly Endpoint[]) {
  const asked = endpoints.map(() => 0);
  const givenUp = endpoints.map(() => 0);
  const targets = endpoints.map(({ answer, isBusy = false }, index) => ({
    isBusy: () => isBusy && givenUp[index] === 0,
    askHealth: (signal: AbortSignal) => {
      asked[index] = (asked[index] ?? 0) + 1;
      return answer(signal);
    },
    giveUp: () => {
      givenUp[index] = (givenUp[index] ?? 0) + 1;
    },
  }));
  let at = 0;
  const current = () => {
    const target = targets[at];
    if (target === undefined) throw new Error('no endpoint');
    return target;
  };
  const leave = (target: ReturnType<typeof current>) => {
    if (current() === target) at = (at + 1) % targets.length;
  };
  return { upstreams: [{ targets, current, leave }], asked, givenUp, at: () => at };
}

describe('probes of services with several endpoints', () => {
  it.each([
    ['answers nothing', silent],
    ['says that it cannot work', broken],
    ['cannot be reached', gone],
  ])('switch away from an endpoint that %s', async (_what, answer) => {
    const { upstreams, asked, at } = service({ answer }, { answer: healthy });
    const stop = startProbes(upstreams, { everyMs: 5, timeoutMs: 20 });
    await waitFor(() => at() === 1 && (asked[1] ?? 0) > 2, { what: 'the next one' });
    stop();
    expect(at()).toBe(1);
    expect(asked[0]).toBe(1);
  });

  it('rotate while no endpoint works, one probe at a time', async () => {
    const { upstreams, asked } = service({ answer: broken }, { answer: gone }, { answer: silent });
    const stop = startProbes(upstreams, { everyMs: 5, timeoutMs: 20 });
    await waitFor(() => (asked[0] ?? 0) > 1, { what: 'the first one again' });
    stop();
    expect(asked[2]).toBe(1);
  });

  it('ignore services with one endpoint', () => {
    const { upstreams, asked } = service({ answer: gone });
    startProbes(upstreams, { everyMs: 1 })();
    expect(asked).toEqual([0]);
  });

  it.each([
    ['is silent', silent],
    ['cannot be reached', gone],
  ])('abort pending requests of an endpoint that %s three times in a row', async (_what, answer) => {
    const { upstreams, asked, givenUp } = service({ answer, isBusy: true }, { answer: healthy });
    const stop = startProbes(upstreams, { everyMs: 5, timeoutMs: 20 });
    await waitFor(() => (givenUp[0] ?? 0) > 0, { what: 'the end of what waits' });
    stop();
    expect([asked[0], givenUp]).toEqual([3, [1, 0]]);
  });

  it('keep pending requests of an endpoint that answers, even rarely or with an error', async () => {
    let count = 0;
    const faltering: Answer = () =>
      count++ % 3 < 2 ? gone(AbortSignal.abort()) : healthy(AbortSignal.abort());
    const { upstreams, asked, givenUp } = service(
      { answer: faltering, isBusy: true },
      { answer: broken, isBusy: true },
    );
    const stop = startProbes(upstreams, { everyMs: 2, timeoutMs: 20 });
    await waitFor(() => asked.every((times) => times > 10), { what: 'many probes' });
    stop();
    expect(givenUp).toEqual([0, 0]);
  });
});
