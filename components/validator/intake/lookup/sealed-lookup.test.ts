import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKeyFilters } from '../../testing/bounds.ts';
import { Cluster } from '../../testing/cluster.ts';
import { World } from '../../testing/world.ts';
import type { KeyFilterMode } from './sealed-lookup.ts';

const opened: (World | Cluster)[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.remove();
});

/** A world whose register has complete keys, with its metrics. */
async function beginWorld(mode: KeyFilterMode = 'on') {
  const runtime = testRuntime('validator', { level: 'warn' });
  const world = new World({ runtime, keyFilters: { ...testKeyFilters, mode } });
  opened.push(world);
  await world.open();
  await world.begin();
  if (mode !== 'off') await covered(world);
  const metric = async (name: string) => {
    const found = runtime.telemetry.registry.getSingleMetric(`chancery_validator_${name}`);
    return (await found?.get())?.values ?? [];
  };
  return Object.assign(world, { metric, lines: runtime.lines });
}

/** Submits until the keys of the register are complete, and waits until everything is stored. */
async function covered(world: World): Promise<void> {
  expect((await world.submit(world.sign().text)).status).toBe(200);
  await waitFor(() => world.register.keys.covers(world.register.state.height), { what: 'complete keys' });
  await settled(world);
}

function settled(world: World): Promise<unknown> {
  const { register } = world;
  return waitFor(() => register.pool.isEmpty && register.facts.unstored === 0, { what: 'all stored' });
}

/** The register service fails its calls. */
function leave(world: World): void {
  world.ledger.before = () => {
    throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');
  };
}

const payload = { vote: 'yes' };
const refusalOf = (code: string) => ({ status: 422, body: { code } });

describe('a register with complete keys', () => {
  it('asks nothing about new transactions, alone, in a batch and behind each other', async () => {
    const world = await beginWorld();
    const { lookups } = world.ledger;
    const drafts = Array.from({ length: 100 }, (_, index) => world.sign({ payload: { index } }));
    let previous = drafts[0]?.txId;
    for (let index = 0; index < 20; index += 1) {
      const next = world.sign({ payload: { chain: index }, previous });
      drafts.push(next);
      previous = next.txId;
    }
    const answers = await Promise.all(drafts.map(({ text }) => world.submit(text)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    await settled(world);
    const behind = world.sign({ payload: { behind: 'sealed' }, previous });
    expect(await world.submit(behind.text)).toMatchObject({ status: 200, body: { added: true } });
    expect(world.ledger.lookups).toBe(lookups);
    expect(world.ledger.keyReads).toBe(1);
    expect(await world.metric('lookup_questions_total')).toContainEqual({
      labels: { by: 'keys' },
      value: 122,
    });
  });

  it('refuses duplicates, replays and second successors: pooled, decided, sealed and after a restart', async () => {
    const world = await beginWorld();
    const parent = world.sign({ payload: { role: 'parent' } });
    const first = world.sign({ payload });
    const child = world.sign({ payload: { role: 'child' }, previous: parent.txId });
    const conflict = { txId: first.txId, text: first.text.replace('"Metadata":{}', '"Metadata":{"a":"b"}') };
    const check = async () => {
      const replay = world.sign({ payload, createdAtMs: Date.now() - 60_000 });
      const fork = world.sign({ payload: { role: 'fork' }, previous: parent.txId });
      expect(await world.submit(first.text)).toMatchObject({ status: 200, body: { alreadyKnown: true } });
      expect(await world.submit(conflict.text)).toMatchObject({ status: 409, body: { code: 'TX_CONFLICT' } });
      expect(await world.submit(replay.text)).toMatchObject(refusalOf('VAL_REPLAY_001'));
      expect(await world.submit(fork.text)).toMatchObject(refusalOf('VAL_CHAIN_FORK'));
    };
    await world.engine.setMode(world.register.id, 'Paused');
    for (const { text } of [parent, first, child]) expect((await world.submit(text)).status).toBe(200);
    await check();
    const { promise, resolve } = Promise.withResolvers<void>();
    world.ledger.before = (call) => (call === 'write' ? promise : undefined);
    await world.engine.setMode(world.register.id, 'Running');
    await waitFor(() => world.register.facts.unstored === 1);
    await check();
    resolve();
    await settled(world);
    await check();
    await world.close();
    world.ledger.before = () => {};
    await world.open();
    await check();
    await covered(world);
    await check();
  });

  it('admits new transactions while the register service is asked about others of the batch', async () => {
    const world = await beginWorld();
    const known = world.sign({ payload });
    await world.submit(known.text);
    await settled(world);
    const gate = Promise.withResolvers<void>();
    const { lookup } = world.ledger;
    world.ledger.lookup = async (queries) => {
      expect(queries.map(({ transactionId }) => transactionId)).toEqual([known.txId]);
      await gate.promise;
      return lookup(queries);
    };
    const asked = world.submit(known.text);
    const others = [1, 2, 3].map((n) => world.submit(world.sign({ payload: { n } }).text));
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200, 200]);
    gate.resolve();
    expect(await asked).toMatchObject({ status: 200, body: { alreadyKnown: true } });
  });

  it('accepts nothing from the first failed call on, and again once the register service answers', async () => {
    const world = await beginWorld();
    leave(world);
    await world.submit(world.sign().text);
    await waitFor(() => world.register.facts.unstored === 1, { what: 'a docket that cannot be stored' });
    await waitFor(() => world.lines.some(({ msg }) => String(msg).includes('could not be stored')));
    const refused = world.sign();
    expect(await world.submit(refused.text)).toMatchObject({
      status: 503,
      body: { code: 'VAL_CHAIN_TRANSIENT' },
    });
    world.ledger.before = () => {};
    expect((await world.submit(refused.text)).status).toBe(200);
    await settled(world);
  });

  it('asks again after its keys were dropped, and reads them once more', async () => {
    const world = await beginWorld();
    const { lookups } = world.ledger;
    world.register.keys.discard();
    await world.submit(world.sign().text);
    expect(world.ledger.lookups).toBe(lookups + 1);
    await covered(world);
    expect(world.ledger.keyReads).toBe(2);
  });
});

describe('a register without complete keys', () => {
  it('asks about everything while a snapshot is late, and after it failed', async () => {
    const gate = Promise.withResolvers<void>();
    const world = new World();
    opened.push(world);
    world.ledger.before = (call) => (call === 'keys' ? gate.promise : undefined);
    await world.open();
    await world.begin();
    const ask = async () => {
      const { lookups } = world.ledger;
      expect((await world.submit(world.sign().text)).status).toBe(200);
      return world.ledger.lookups - lookups;
    };
    expect(await ask()).toBe(1);
    gate.reject(new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone'));
    await waitFor(() => world.register.keys.isEmpty);
    expect(await ask()).toBe(1);
    expect(world.ledger.keyReads).toBe(1);
  });

  it('drops keys whose count of transactions the register service contradicts', async () => {
    const world = await beginWorld();
    const { findRegister } = world.ledger;
    world.ledger.findRegister = async (registerId) => {
      const facts = await findRegister(registerId);
      return facts && { ...facts, transactionCount: 7_000 };
    };
    // A refusal by register rules asks whether this validator is behind.
    await world.submit(world.sign({ metadata: { Type: 'Control' } }).text);
    await waitFor(() => world.register.keys.isEmpty, { what: 'dropped keys' });
    expect(world.lines.map(({ msg }) => String(msg)).join()).toContain('counts other transactions');
  });
});

describe('a register that jumps to a later height', () => {
  it('asks about what is submitted while its waiting transactions are compared', async () => {
    const world = await beginWorld();
    await world.engine.setMode(world.register.id, 'Paused');
    const [waiting, sealed] = [world.sign(), world.sign()];
    await world.submit(waiting.text);
    const { ledger, register } = world;
    const { findRegister, lookup } = ledger;
    // The frontier of twice as many dockets has as many hashes.
    const height = register.state.height * 2;
    ledger.findRegister = async (registerId) => {
      const facts = await findRegister(registerId);
      return facts && { ...facts, height };
    };
    const gate = Promise.withResolvers<void>();
    let compared = 0;
    ledger.lookup = async (queries) => {
      const answers = await lookup(queries);
      if (queries.some(({ transactionId }) => transactionId === waiting.txId)) {
        compared += 1;
        await gate.promise;
      }
      // The skipped dockets sealed this transaction, with another record.
      const isSealed = (index: number) => queries[index]?.transactionId === sealed.txId;
      return answers.map((each, index) => (isSealed(index) ? { ...each, sealedRecordHash: 'ff' } : each));
    };
    const jump = world.engine.registers.fastForward(register.id);
    await waitFor(() => compared > 0, { what: 'the comparison of waiting transactions' });
    expect(await world.submit(sealed.text)).toMatchObject({ status: 409, body: { code: 'TX_CONFLICT' } });
    gate.resolve();
    expect(await jump).toBe(true);
    expect(register.state.height).toBe(height);
    expect(register.pool.find(sealed.txId)).toBeUndefined();
  });
});

describe('the mode', () => {
  it('off reads no keys', async () => {
    const world = await beginWorld('off');
    for (let n = 0; n < 3; n += 1) await world.submit(world.sign().text);
    expect(world.ledger.keyReads).toBe(0);
  });

  it('shadow asks all the same, and counts answers that differ', async () => {
    const world = await beginWorld('shadow');
    const known = world.sign({ payload });
    await world.submit(known.text);
    await settled(world);
    const { lookups } = world.ledger;
    expect(await world.submit(known.text)).toMatchObject({ status: 200, body: { alreadyKnown: true } });
    await world.submit(world.sign().text);
    expect(world.ledger.lookups).toBe(lookups + 2);
    const count = async () => (await world.metric('key_filter_disagreements_total'))[0]?.value;
    expect(await count()).toBe(0);
    const { keys } = world.register;
    const certain = {
      sealedRecordHash: '',
      previousKnown: false,
      previousType: '',
      previousSuccessor: '',
      sealedReplay: '',
    };
    Object.assign(keys, { answer: () => certain });
    expect(await world.submit(known.text)).toMatchObject({ status: 200, body: { alreadyKnown: true } });
    await waitFor(async () => (await count()) === 1, { what: 'a counted difference' });
    expect(world.lines.at(-1)).toMatchObject({ transactionId: known.txId });
  });
});

describe('a set with complete keys', () => {
  it('decides and stores without a question, also about transactions that only one member was given', async () => {
    const cluster = await new Cluster(4).open();
    opened.push(cluster);
    await cluster.begin();
    const isCovered = () =>
      cluster.members.every(({ register }) => register.keys.covers(register.state.height));
    for (let n = 0; n < 4 && !isCovered(); n += 1) {
      for (const member of cluster.members)
        await cluster.submit(member, { payload: { warm: n, at: member.id } });
      await cluster.agreed();
    }
    await waitFor(isCovered, { what: 'complete keys at all members' });
    const { lookups } = cluster.ledger;
    const before = cluster.ledger.sealed.size;
    for (let n = 0; n < 20; n += 1)
      await cluster.submit(cluster.member(n % 4), { payload: { certain: n }, createdAtMs: Date.now() });
    await cluster.sealed(before + 20);
    await cluster.agreed();
    expect(cluster.ledger.lookups - lookups).toBe(0);
  }, 30_000);
});
