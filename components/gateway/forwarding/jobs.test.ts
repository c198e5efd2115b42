import { describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { startProbes } from './jobs.ts';

type Answer = (signal: AbortSignal) => Promise<number>;

const healthy: Answer = async () => 200;
const broken: Answer = async () => 503;
const gone: Answer = () => Promise.reject(new Error('connection refused'));
const silent: Answer = (signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

/** A service whose endpoints answer probes like this. */
function service(...answers: readonly Answer[]) {
  const asked = answers.map(() => 0);
  const pools = answers.map((answer, index) => ({
    request: async ({ signal }: { signal: AbortSignal }) => {
      asked[index] = (asked[index] ?? 0) + 1;
      return { statusCode: await answer(signal), body: { dump: async () => undefined } };
    },
  }));
  let at = 0;
  const current = () => {
    const pool = pools[at];
    if (pool === undefined) throw new Error('no endpoint');
    return pool;
  };
  const upstream = {
    size: pools.length,
    pool: current,
    moveOn: (from: ReturnType<typeof current>) => {
      if (current() === from) at = (at + 1) % pools.length;
    },
  };
  return { upstreams: [upstream], asked, at: () => at };
}

describe('probes of services with several endpoints', () => {
  it.each([
    ['answers nothing', silent],
    ['says that it cannot work', broken],
    ['cannot be reached', gone],
  ])('leave one that %s', async (_what, answer) => {
    const { upstreams, asked, at } = service(answer, healthy);
    const stop = startProbes(upstreams, { everyMs: 5, timeoutMs: 20 });
    await waitFor(() => at() === 1 && (asked[1] ?? 0) > 2, { what: 'the next one' });
    stop();
    expect(at()).toBe(1);
    expect(asked[0]).toBe(1);
  });

  it('go round while none works, one probe at a time', async () => {
    const { upstreams, asked } = service(broken, gone, silent);
    const stop = startProbes(upstreams, { everyMs: 5, timeoutMs: 20 });
    await waitFor(() => (asked[0] ?? 0) > 1, { what: 'the first one again' });
    stop();
    expect(asked[2]).toBe(1);
  });

  it('leave services with one endpoint alone', () => {
    const { upstreams, asked } = service(gone);
    startProbes(upstreams, { everyMs: 1 })();
    expect(asked).toEqual([0]);
  });
});
