import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeRouting } from '#core/blueprint/steps/routing.ts';
import { type Turn, turnsDefinition } from '#core/blueprint/testing/turns.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../chain/building/docket.ts';
import { judgeDocket, judgeSteps } from '../../chain/building/judge.ts';
import { inadmissibleTombstones } from '../../chain/sealing/eviction.ts';
import { testKey } from '../../testing/keys.ts';
import type { Draft } from '../../testing/submissions.ts';
import { publicationOf, turnSubmission } from '../../testing/turns.ts';
import { registerId, systemKey, userKey, validatorKey, World } from '../../testing/world.ts';

const clerk = testKey(3);
const stranger = testKey(4);
const instanceId = '6f3a2c10-0000-4000-8000-000000000001';
const publication = publicationOf(registerId, turnsDefinition(clerk.address), systemKey);
const base = { pin: publication.txId, instanceId, askerAddress: userKey.address };
const keyOf = (seq: number) => (seq % 2 === 0 ? userKey : clerk);

describe('steps at a validator', () => {
  let world: World;
  /** Calls of the register service. */
  let calls: string[];
  beforeEach(async () => {
    world = await new World().open();
    calls = [];
    world.ledger.before = (call) => void calls.push(call);
    await world.begin();
    expect((await world.submit(publication.text)).status).toBe(200);
    await stored(publication.txId);
  });
  afterEach(() => world.remove());

  const stored = (txId: string) => waitFor(() => world.ledger.sealed.has(txId), { what: 'the seal' });
  const step = (turn: Partial<Turn>, draft: Partial<Draft> & Pick<Draft, 'previous'>) => {
    const seq = turn.seq ?? 0;
    return turnSubmission({ ...base, seq, ...turn }, { registerId, key: keyOf(seq), ...draft });
  };
  const codeOf = async (text: string) => {
    const { status, body } = await world.submit(text);
    return status === 200 ? 'accepted' : `${status} ${body['code']}`;
  };

  it('accepts a whole instance, stored or waiting, and reads the definition once', async () => {
    let previous = publication.txId;
    for (let seq = 0; seq < 6; seq += 1) {
      const next = step({ seq }, { previous });
      expect(await codeOf(next.text)).toBe('accepted');
      if (seq % 3 === 0) await stored(next.txId);
      previous = next.txId;
    }
    await stored(previous);
    expect(calls.filter((call) => call === 'record')).toHaveLength(1);
    expect(world.register.status).toBe('Running');
  });

  it('refuses each wrong first step', async () => {
    const previous = publication.txId;
    const unknownPin = 'e'.repeat(64);
    const cases: [string, string, ReturnType<typeof step>][] = [
      ['no starting action', 'VAL_BP_001', step({ seq: 1, wrong: { seq: 0 } }, { previous })],
      [
        'an asker that is not the sender',
        'VAL_BP_003',
        step({ askerAddress: stranger.address }, { previous }),
      ],
      ['a wrong number', 'VAL_BP_003', step({ wrong: { seq: 1 } }, { previous })],
      ['an unknown route', 'VAL_BP_003', step({ wrong: { routeId: 'none' } }, { previous })],
      ['another next action', 'VAL_BP_003', step({ wrong: { current: [{ actionId: 0 }] } }, { previous })],
      ['another blueprint', 'VAL_BP_003', step({}, { previous, blueprintId: 'loan' })],
      ['another action', 'VAL_BP_003', step({}, { previous, actionId: '1' })],
      ['another instance', 'VAL_BP_003', step({}, { previous, metadata: { instanceId: 'x' } })],
      ['malformed routing', 'VAL_BP_003', step({}, { previous, metadata: { routing: '{}' } })],
      ['a label of another type', 'VAL_BP_003', step({}, { previous, metadata: { Type: 'Rejection' } })],
      ['no predecessor', 'VAL_BP_003', step({}, { previous: undefined })],
      ['an unknown pin', 'VAL_BP_VERSION_001', step({ pin: unknownPin }, { previous })],
      ['a pin that is no publication', 'VAL_BP_VERSION_001', step({ pin: genesisId() }, { previous })],
    ];
    for (const [what, code, { text }] of cases) {
      const answer = await codeOf(text);
      expect(`${what}: ${answer}`).toMatch(new RegExp(`: 4\\d\\d ${code}$`));
    }
    expect(world.register.pool.size).toBe(0);
    expect(await codeOf(step({}, { previous }).text)).toBe('accepted');
  });

  it.each([true, false])('refuses what does not follow a step (stored: %s)', async (isStored) => {
    const first = step({}, { previous: publication.txId });
    if (!isStored) await world.engine.setMode(registerId, 'Paused');
    expect(await codeOf(first.text)).toBe('accepted');
    if (isStored) await stored(first.txId);
    const previous = first.txId;
    const cases: [string, string, string][] = [
      ['a plain transaction', 'VAL_BP_003', world.sign({ previous }).text],
      ['a stale step', 'VAL_BP_003', step({ seq: 0 }, { previous, payload: { again: 1 } }).text],
      ['a step of a stranger', 'VAL_BP_002', step({ seq: 1 }, { previous, key: stranger }).text],
      ['a skipped step', 'VAL_BP_003', step({ seq: 3 }, { previous }).text],
    ];
    for (const [what, code, text] of cases) {
      expect(`${what}: ${await codeOf(text)}`).toMatch(new RegExp(`: 4\\d\\d ${code}$`));
    }
    const second = step({ seq: 1 }, { previous });
    expect(await codeOf(second.text)).toBe('accepted');
    const fork = step({ seq: 1 }, { previous, payload: { other: 1 } });
    expect(await codeOf(fork.text)).toMatch(/VAL_CHAIN_FORK/);
  });

  it('refuses a step behind a plain transaction', async () => {
    const plain = world.sign();
    await world.submit(plain.text);
    await stored(plain.txId);
    expect(await codeOf(step({ seq: 1 }, { previous: plain.txId }).text)).toMatch(/VAL_BP_003/);
    expect(await codeOf(step({ seq: 0 }, { previous: plain.txId }).text)).toMatch(/VAL_BP_003/);
  });

  it('answers to retry while the register service cannot answer, and while a publication is not stored', async () => {
    const first = step({}, { previous: publication.txId });
    world.ledger.before = (call) => {
      if (call === 'record') throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'away');
    };
    expect(await codeOf(first.text)).toBe('503 VAL_CHAIN_TRANSIENT');
    world.ledger.before = (call) => {
      if (call === 'lookup') throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'away');
    };
    expect(await codeOf(first.text)).toBe('503 VAL_CHAIN_TRANSIENT');
    world.ledger.before = () => {};
    await world.engine.setMode(registerId, 'Paused');
    const second = publicationOf(registerId, turnsDefinition(clerk.address, 'Second'), systemKey);
    expect(await codeOf(second.text)).toBe('accepted');
    const early = step({ pin: second.txId }, { previous: second.txId });
    expect(await codeOf(early.text)).toBe('503 VAL_CHAIN_TRANSIENT');
    await world.engine.setMode(registerId, 'Running');
    await stored(second.txId);
    expect(await codeOf(early.text)).toBe('accepted');
    expect(await codeOf(first.text)).toBe('accepted');
  });

  it('judges proposed dockets by their time and content, and not those that a quorum decided', async () => {
    await world.engine.setMode(registerId, 'Paused');
    const first = step({}, { previous: publication.txId });
    expect(await codeOf(first.text)).toBe('accepted');
    const { state, pool } = world.register;
    const pooled = pool.find(first.txId)?.transaction;
    if (pooled === undefined) throw new Error('the step waits');
    const facts = { validatorAddress: validatorKey.address, nowMicros: BigInt(Date.now()) * 1000n };
    const codes = (transactions: readonly (typeof pooled)[]) =>
      judgeSteps(buildDocket(state, transactions, facts), () => undefined).map(({ code }) => code);
    expect(codes([pooled])).toEqual([]);
    const { step: own, ...plain } = pooled;
    if (own === undefined) throw new Error('it is a step');
    const unresolved = { ...plain, step: { ...own, context: undefined } };
    expect(codes([unresolved])).toEqual(['VAL_BP_VERSION_001']);
    const behind = { ...plain, txId: 'a'.repeat(64), previousTransactionId: first.txId };
    expect(codes([pooled, behind])).toEqual(['VAL_BP_003']);
    expect(judgeDocket(state, buildDocket(state, [unresolved], facts))).toEqual([]);
  });

  it('restores waiting steps after a restart, and seals them', async () => {
    await world.engine.setMode(registerId, 'Paused');
    const first = step({}, { previous: publication.txId });
    const second = step({ seq: 1 }, { previous: first.txId });
    for (const { text } of [first, second]) expect(await codeOf(text)).toBe('accepted');
    await world.close();
    await world.open();
    const waiting = [...world.register.pool.waiting()];
    expect(waiting.map(({ step: found }) => found?.context?.isPinKnown)).toEqual([true, true]);
    await world.engine.setMode(registerId, 'Running');
    await stored(second.txId);
  });

  it('evicts a step whose time has run out, with its descendants', async () => {
    const timed = {
      ...turnsDefinition(clerk.address),
      id: 'timed',
      actions: [
        {
          id: 0,
          title: 'Ask',
          sender: 'asker',
          isStartingAction: true,
          routes: [{ id: 'both', nextActionIds: [1, 2], branchDeadline: 'PT10M' }],
        },
        { id: 1, title: 'One', sender: 'clerk', routes: [{ id: 'done', nextActionIds: [] }] },
        { id: 2, title: 'Two', sender: 'clerk', routes: [{ id: 'done', nextActionIds: [] }] },
      ],
    };
    const published = publicationOf(registerId, timed, systemKey);
    await world.submit(published.text);
    await stored(published.txId);
    const createdAtMs = Date.now();
    const until = formatLedgerTimestamp(BigInt(createdAtMs + 600_000) * 1000n);
    const branch = (actionId: number, index: number) => ({ actionId, branchKey: `0.both.${index}` });
    const current = [branch(1, 0), branch(2, 1)].map((each) => ({ ...each, until }));
    const common = {
      v: 1,
      instanceId,
      blueprintDefinitionTxId: published.txId,
      roles: { asker: userKey.address },
    };
    const taken = (routing: object, draft: Partial<Draft>) =>
      world.sign({
        createdAtMs,
        blueprintId: 'timed',
        metadata: { instanceId, routing: encodeRouting({ ...common, ...routing } as never) },
        ...draft,
      });
    const first = taken(
      { seq: 0, completedActionId: 0, routeId: 'both', nextActions: [branch(1, 0), branch(2, 1)], current },
      { previous: published.txId, actionId: '0' },
    );
    expect(await codeOf(first.text)).toBe('accepted');
    await stored(first.txId);
    await world.engine.setMode(registerId, 'Paused');
    const second = taken(
      { seq: 1, completedActionId: 1, routeId: 'done', nextActions: [], current: current.slice(1) },
      { previous: first.txId, actionId: '1', key: clerk },
    );
    expect(await codeOf(second.text)).toBe('accepted');
    const { state, pool } = world.register;
    expect(inadmissibleTombstones(state, pool, createdAtMs + 599_000)).toEqual([]);
    expect(inadmissibleTombstones(state, pool, createdAtMs + 601_000)).toMatchObject([
      { txId: second.txId, status: 'rejected', code: 'VAL_BP_003' },
    ]);
  });

  it('asks the register service for plain transactions as often as without steps', async () => {
    const asked = async (count: number) => {
      calls.length = 0;
      const answers = await Promise.all(Array.from({ length: count }, () => world.submit(world.sign().text)));
      expect(answers.every(({ status }) => status === 200)).toBe(true);
      return calls.filter((call) => call === 'lookup' || call === 'record').length;
    };
    const before = await asked(24);
    const first = step({}, { previous: publication.txId });
    expect(await codeOf(first.text)).toBe('accepted');
    await stored(first.txId);
    expect(await asked(24)).toBeLessThanOrEqual(before);
    expect(calls).not.toContain('record');
  });

  const genesisId = () => world.ledger.dockets[0]?.docket.transactions[0]?.txId ?? '';
});
