import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import type { DocketBundle, SealedTransaction } from '../dockets/docket.ts';
import { unfiltered } from '../segments/store.ts';
import { stateAfter } from './chain.ts';
import type { CommitOutcome } from './commit/docket-commit.ts';
import { signaturesByPool } from './signatures.ts';
import { createDocketWriter } from './store.ts';
import type { ChainState } from './verify.ts';
import { createWriteDocket, type WriteDocket } from './write.ts';

describe('a docket that arrives while its predecessor is being stored', () => {
  let register: TestRegister;
  let registerId: string;
  let write: WriteDocket;
  /** Events in order: signatures of a docket verified (by their number), commit begun, commit ended. */
  let events: string[];
  /** Holds commits until it is resolved. */
  let gate: PromiseWithResolvers<void>;
  /** Replaces the outcome of commits. */
  let fails: (docketNumber: number) => CommitOutcome | Error | undefined;
  let count = 0;

  beforeAll(async () => {
    register = await startTestRegister('write_pipeline');
    registerId = await register.createRegister();
  });
  afterAll(() => register.stop());
  beforeEach(() => {
    events = [];
    gate = Promise.withResolvers();
    fails = () => undefined;
    write = openWrite();
  });

  /** As the service opens it, on the same tables, with hooks for the test. */
  function openWrite(): WriteDocket {
    const { database, runtime, pool } = register;
    const writer = createDocketWriter({ database, segments: unfiltered });
    const verify = signaturesByPool(pool);
    return createWriteDocket({
      database,
      segments: unfiltered,
      clock: runtime.clock,
      loadWorkflows: async () => new Map(),
      judges: {
        verifier: createVerifier(nodeEd25519()),
        verifySignatures: (checks) => {
          events.push(`judge ${checks.length}`);
          return verify(checks);
        },
      },
      writer: {
        async commit(commit) {
          const number = commit.docket.docket_number;
          events.push(`begin ${number}`);
          await gate.promise;
          const failure = fails(number);
          if (failure instanceof Error) throw failure;
          const outcome = failure ?? (await writer.commit(commit));
          events.push(`${outcome} ${number}`);
          return outcome;
        },
      },
      onIndexable: () => undefined,
      onStored: () => undefined,
      onRulesChanged: () => undefined,
      onHalted: () => undefined,
      onResult: () => undefined,
    });
  }

  function next(previousTransactionId?: string) {
    count += 1;
    return transaction({
      registerId,
      payload: { n: count },
      ...(previousTransactionId && { previousTransactionId }),
    });
  }

  const many = (length: number) => Array.from({ length }, () => next());
  const seal = (state: ChainState, transactions: readonly SealedTransaction[]) =>
    buildDocket(state, transactions, register.members);

  function follow(state: ChainState, { header }: DocketBundle): ChainState {
    const frontier = state.frontier.clone();
    frontier.append(logLeaf(header));
    if (state.rules === undefined) throw new Error('the register has not begun');
    return stateAfter(state, header, { rules: state.rules, frontier });
  }

  /** Two consecutive dockets; the first one has two transactions, which identifies its verification. */
  async function two(second: (first: readonly ReturnType<typeof next>[]) => readonly SealedTransaction[]) {
    const state = await register.state(registerId);
    const transactions = many(2);
    const first = seal(state, transactions);
    return { number: state.height, first, second: seal(follow(state, first), second(transactions)) };
  }

  const outcomes = async (writing: readonly Promise<{ readonly outcome: string }>[]) =>
    (await Promise.all(writing)).map(({ outcome }) => outcome);

  it('is judged meanwhile, and stored after it', async () => {
    const { number, first, second } = await two(() => many(3));
    const writing = [write(first), write(second)];
    await waitFor(() => events.includes('judge 3'), { what: 'the second one to be judged' });
    expect(events).toEqual(['judge 2', `begin ${number}`, 'judge 3']);
    gate.resolve();
    expect(await outcomes(writing)).toEqual(['stored', 'stored']);
    const end = [`stored ${number}`, `begin ${number + 1}`, `stored ${number + 1}`];
    expect(events.slice(3)).toEqual(end);
    expect((await register.state(registerId)).height).toBe(number + 2);
  });

  it('may follow transactions of its predecessor', async () => {
    const { first, second } = await two(([parent]) => [next(parent?.txId)]);
    const writing = [write(first), write(second)];
    gate.resolve();
    expect(await outcomes(writing)).toEqual(['stored', 'stored']);
    expect(events.filter((event) => event === 'judge 1')).toHaveLength(1);
  });

  it('is out of order when its predecessor was not stored', async () => {
    const { number, first, second } = await two(() => many(3));
    fails = (docketNumber) => (docketNumber === number ? new Error('no connection') : undefined);
    const [one, other] = [write(first), write(second)];
    gate.resolve();
    await expect(one).rejects.toThrow('no connection');
    expect(await other).toEqual({ outcome: 'out_of_order', height: number });
    fails = () => undefined;
    expect(await outcomes([write(first), write(second)])).toEqual(['stored', 'stored']);
  });

  it('is refused when it repeats a key of its predecessor', async () => {
    const { number, first, second } = await two((transactions) => transactions.slice(1));
    const writing = [write(first), write(second)];
    gate.resolve();
    const [one, other] = await Promise.all(writing);
    expect(one).toMatchObject({ outcome: 'stored', height: number + 1 });
    expect(other).toMatchObject({ outcome: 'invalid', violations: [{ code: 'VAL_CHAIN_004' }] });
  });

  it('is refused when it does not follow its predecessor', async () => {
    const { number, first } = await two(() => many(1));
    const state = await register.state(registerId);
    const other = seal(follow(state, seal(state, many(1))), many(3));
    const writing = [write(first), write(other)];
    gate.resolve();
    expect(await Promise.all(writing)).toMatchObject([
      { outcome: 'stored', height: number + 1 },
      { outcome: 'invalid', violations: [{ code: 'PREVIOUS_HASH_MISMATCH' }] },
    ]);
  });

  it('is judged again when another process was faster', async () => {
    const { first, second } = await two(() => many(3));
    const elsewhere = register.ledger.writeDocket;
    const writing = [write(first), write(second)];
    await waitFor(() => events.includes('judge 3'), { what: 'the second one to be judged' });
    expect(await elsewhere(first)).toMatchObject({ outcome: 'stored' });
    expect(await elsewhere(second)).toMatchObject({ outcome: 'stored' });
    gate.resolve();
    expect(await outcomes(writing)).toEqual(['replayed', 'replayed']);
  });

  it('does not wait for other registers, nor for dockets that are stored already', async () => {
    const { first, second } = await two(() => many(3));
    const writing = [write(first), write(second)];
    const otherId = await register.createRegister();
    const other = buildDocket(
      await register.state(otherId),
      [transaction({ registerId: otherId, payload: { n: 1 } })],
      register.members,
    );
    const held = write(other);
    await waitFor(() => events.filter((event) => event.startsWith('begin')).length === 2, {
      what: 'both registers to be at their commit',
    });
    gate.resolve();
    expect(await outcomes([...writing, held])).toEqual(['stored', 'stored', 'stored']);
    expect(await outcomes([write(first), write(second)])).toEqual(['replayed', 'replayed']);
  });
});
