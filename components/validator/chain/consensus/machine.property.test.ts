import { describe, expect, it } from 'vitest';
import { advance, beginHeight, createMachine } from './machine.ts';
import type { Machine } from './machine-state.ts';
import type { HeightRules } from './members.ts';
import type { Effect, Message, Value } from './messages.ts';

/**
 * A seeded network of four machines: delay, reordering, loss until a stabilisation time, and one member that may
 * equivocate. Checked: agreement at every height, one decision per member and height, the lock rule, and progress.
 */

function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

interface Event {
  at: number;
  order: number;
  to: string;
  run: (machine: Machine) => Effect[];
}

const members = ['a', 'b', 'c', 'd'];
const timers = { proposeMs: 300, voteMs: 100, stepMs: 50 };

function rulesFor(self: string, height: number): HeightRules {
  return { height, self, members, quorum: 3, timers };
}

function simulate(seed: number, heights: number, byzantine: string | undefined) {
  const next = random(seed);
  const stableAt = 3_000;
  let now = 0;
  let order = 0;
  let built = 0;
  const queue: Event[] = [];
  const machines = new Map(members.map((id) => [id, createMachine(rulesFor(id, 0))]));
  const decisions = new Map<string, Map<number, string>>(members.map((id) => [id, new Map()]));
  const commits = new Map<number, Extract<Effect, { kind: 'decide' }>>();
  const history = new Map<string, Message[]>();

  const push = (to: string, delay: number, run: Event['run']) => {
    order += 1;
    const event = { at: now + delay, order, to, run };
    let place = queue.length;
    while (place > 0 && (queue[place - 1]?.at ?? 0) > event.at) place -= 1;
    queue.splice(place, 0, event);
  };
  const deliver = (to: string, message: Message) => {
    const lost = now < stableAt && next() < 0.25;
    const delay = now < stableAt ? 1 + next() * 400 : 1 + next() * 20;
    const retried = lost ? stableAt - now + next() * 50 : delay;
    push(to, retried, (machine) => {
      if (message.validatorId === byzantine) gossip(to, message);
      return advance(machine, { kind: 'message', message });
    });
  };
  /** Tendermint's network assumption: a message that one correct member received reaches all of them. */
  const relayed = new Set<string>();
  const gossip = (from: string, message: Message) => {
    const name = JSON.stringify(message);
    if (relayed.has(name)) return;
    relayed.add(name);
    for (const to of members) if (to !== from && to !== byzantine) deliver(to, message);
  };
  const broadcast = (from: string, message: Message) => {
    const sent = history.get(from) ?? [];
    sent.push(message);
    history.set(from, sent);
    push(from, 0, (machine) => advance(machine, { kind: 'message', message }));
    for (const to of members) if (to !== from) deliver(to, message);
  };
  const newValue = (): Value => {
    built += 1;
    return { hash: `v${built}`, merkleRoot: `m${built}`, logRoot: `l${built}`, timestamp: `t${built}` };
  };

  const twinOf = (message: Message): Message => {
    if (message.kind === 'proposal') return { ...message, value: newValue() };
    return { ...message, value: message.value === undefined ? newValue() : undefined };
  };
  const send = (from: string, effect: Extract<Effect, { kind: 'sign' }>) => {
    const own = { validatorId: from, signature: 's' };
    const plain = effect.message;
    const message: Message =
      plain.kind === 'proposal'
        ? { ...plain, ...own }
        : { ...plain, timestamp: plain.timestamp ?? 'nil', ...own };
    if (from !== byzantine || next() < 0.5) return broadcast(from, message);
    const twin = twinOf(message);
    for (const to of members) deliver(to, next() < 0.5 ? message : twin);
  };

  const decided = (id: string, machine: Machine, effect: Extract<Effect, { kind: 'decide' }>) => {
    const own = decisions.get(id);
    if (own?.has(effect.height)) throw new Error(`${id} decided height ${effect.height} twice`);
    if (effect.precommits.length < 3) throw new Error('decision without a quorum');
    own?.set(effect.height, effect.value.hash);
    commits.set(effect.height, effect);
    act(id, machine, beginHeight(machine, rulesFor(id, effect.height + 1)));
    catchUp(id, effect.height + 1);
    if (effect.height + 1 < heights) push(id, 1, (target) => advance(target, { kind: 'work' }));
  };

  const perform = (id: string, machine: Machine, effect: Effect): void => {
    switch (effect.kind) {
      case 'build':
        push(id, 1, (target) => advance(target, { kind: 'built', round: effect.round, value: newValue() }));
        break;
      case 'judge': {
        const { round, value } = effect.proposal;
        push(id, 1, (target) =>
          advance(target, { kind: 'judged', round, hash: value.hash, verdict: 'valid' }),
        );
        break;
      }
      case 'sign':
        send(id, effect);
        break;
      case 'schedule': {
        const { height, round, step } = effect;
        push(id, effect.afterMs, (target) => advance(target, { kind: 'timeout', height, round, step }));
        break;
      }
      case 'behind': {
        const commit = commits.get(machine.rules.height);
        if (commit) push(id, 5, (target) => advance(target, { ...commit, kind: 'committed' }));
        break;
      }
      case 'decide':
        decided(id, machine, effect);
        break;
      default:
        break;
    }
  };
  const act = (id: string, machine: Machine, effects: Effect[]): void => {
    for (const effect of effects) perform(id, machine, effect);
  };
  /** Stands in for GetCommit and retransmission: every message of this height is delivered again. */
  const catchUp = (id: string, height: number): void => {
    for (const [from, sent] of history) {
      if (from === byzantine) continue;
      for (const message of sent) if (message.height === height) deliver(id, message);
    }
  };

  for (const id of members) push(id, next() * 50, (machine) => advance(machine, { kind: 'work' }));
  let steps = 0;
  while (queue.length > 0 && steps < 60_000) {
    steps += 1;
    const event = queue.shift();
    if (event === undefined) break;
    now = event.at;
    const machine = machines.get(event.to);
    if (machine === undefined) continue;
    if (machine.rules.height >= heights) continue;
    act(event.to, machine, event.run(machine));
  }
  return { decisions, steps };
}

function agreed(decisions: Map<string, Map<number, string>>, honest: string[], heights: number) {
  for (let height = 0; height < heights; height += 1) {
    const values = new Set(honest.flatMap((id) => decisions.get(id)?.get(height) ?? []));
    expect(values.size, `height ${height}`).toBeLessThanOrEqual(1);
  }
}

describe('a seeded network of four', () => {
  it('agrees and makes progress with loss, delay and reordering', () => {
    for (let seed = 1; seed <= 25; seed += 1) {
      const { decisions } = simulate(seed, 4, undefined);
      agreed(decisions, members, 4);
      for (const id of members) expect(decisions.get(id)?.size, `seed ${seed} ${id}`).toBe(4);
    }
  });

  it('agrees while one member equivocates in proposals and votes', () => {
    for (let seed = 100; seed < 125; seed += 1) {
      const { decisions } = simulate(seed, 3, 'b');
      agreed(decisions, ['a', 'c', 'd'], 3);
      for (const id of ['a', 'c', 'd']) expect(decisions.get(id)?.size, `seed ${seed} ${id}`).toBe(3);
    }
  });
});
