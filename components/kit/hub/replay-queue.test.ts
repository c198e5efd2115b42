import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { settle } from '#kit/testing/manual-timing.ts';
import { ReplayQueue } from './replay-queue.ts';

/** A queue whose replays end when the test says so. */
function startQueue(limit: number) {
  const queue = new ReplayQueue(limit);
  const running: { readonly name: string; readonly user: string; readonly end: () => void }[] = [];
  const started: string[] = [];
  const unwanted = new Set<string>();
  const add = (user: string, name = user) => {
    const replay = async () => {
      const { promise, resolve: end } = Promise.withResolvers<void>();
      const entry = { name, user, end };
      running.push(entry);
      started.push(name);
      await promise;
      running.splice(running.indexOf(entry), 1);
    };
    return queue.run(user, () => !unwanted.has(name), replay);
  };
  const end = async (name: string) => {
    running.find((each) => each.name === name)?.end();
    await settle();
  };
  return { queue, running, started, unwanted, add, end };
}

interface Added {
  readonly user: string;
  readonly name: string;
  readonly result: Promise<void>;
}

const event = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), user: fc.constantFrom('a', 'b', 'c', 'd') }),
  fc.record({ kind: fc.constant('end' as const), at: fc.nat(5) }),
  fc.record({ kind: fc.constant('close' as const), at: fc.nat(30) }),
);
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never;
type World = ReturnType<typeof startQueue>;

async function act(world: World, added: Added[], one: Event): Promise<void> {
  if (one.kind === 'add') {
    const name = `${one.user}${added.length}`;
    added.push({ user: one.user, name, result: world.add(one.user, name) });
  } else if (one.kind === 'end') {
    await world.end(world.running[one.at]?.name ?? '');
  } else {
    const name = added[one.at]?.name ?? '';
    if (!world.started.includes(name)) world.unwanted.add(name);
  }
}

function assertBounds({ running, started, unwanted }: World, added: readonly Added[], limit: number): void {
  const users = running.map(({ user }) => user);
  expect(new Set(users).size).toBe(users.length);
  expect(users.length).toBeLessThanOrEqual(limit);
  const waiting = added.filter(({ name }) => !started.includes(name) && !unwanted.has(name));
  if (users.length < limit) expect(waiting.every(({ user }) => users.includes(user))).toBe(true);
}

describe('the queue of replays', () => {
  it('runs one replay of a user, and users by turns', async () => {
    const { started, add, end } = startQueue(2);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) void add(name.charAt(0), name);
    expect(started).toEqual(['a1', 'b1']);
    await end('a1');
    expect(started).toEqual(['a1', 'b1', 'a2']);
    await end('a2');
    expect(started.at(-1)).toBe('c1');
    await end('b1');
    expect(started.at(-1)).toBe('b2');
    await end('c1');
    expect(started).toEqual(['a1', 'b1', 'a2', 'c1', 'b2', 'a3']);
  });

  it('drops what is not wanted any more: when another one of the user comes, or when it would start', async () => {
    const { started, unwanted, add, end } = startQueue(1);
    const first = add('a', 'a1');
    const second = add('a', 'a2');
    unwanted.add('a2');
    const third = add('a', 'a3');
    await second;
    unwanted.add('a3');
    await end('a1');
    await Promise.all([first, third]);
    void add('b');
    expect(started).toEqual(['a1', 'b']);
  });

  it('goes on after a replay that fails', async () => {
    const queue = new ReplayQueue(1);
    const fails = queue.run(
      'a',
      () => true,
      () => Promise.reject(new Error('away')),
    );
    const runs = { count: 0 };
    const next = queue.run(
      'a',
      () => true,
      async () => {
        runs.count += 1;
      },
    );
    await expect(fails).rejects.toThrow('away');
    await next;
    expect(runs.count).toBe(1);
  });

  it('holds its bounds in every order of events, leaves no place empty, and forgets nothing', async () => {
    const scenario = [fc.integer({ min: 1, max: 3 }), fc.array(event, { maxLength: 40 })] as const;
    await fc.assert(
      fc.asyncProperty(...scenario, async (limit, events) => {
        const world = startQueue(limit);
        const added: Added[] = [];
        for (const each of events) {
          await act(world, added, each);
          await settle();
          assertBounds(world, added, limit);
        }
        while (world.running.length > 0) await world.end(world.running[0]?.name ?? '');
        await Promise.all(added.map(({ result }) => result));
        const wanted = added.map(({ name }) => name).filter((name) => !world.unwanted.has(name));
        expect([...world.started].sort()).toEqual(wanted.sort());
      }),
    );
  });
});
