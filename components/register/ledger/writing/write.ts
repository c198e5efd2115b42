import { type Violation, violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { LoadWorkflows } from '../../blueprints/publications/workflows.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { IndexedDocket } from '../../queries/projection/rows.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import type { Segments } from '../segments/segments.ts';
import { createChainCache } from './chain.ts';
import { indexedDocketOf, type NewTransaction } from './commit/docket-commit.ts';
import { isJudged, type Judged, judgeDocket } from './judge.ts';
import { judgeRepeated } from './replay.ts';
import type { DocketWriter } from './store.ts';
import { type ChainState, type DocketJudges, type ReadDocket, readDocket } from './verify.ts';
import { createWritePipeline, type PipelineSlot, type PreviousWrite } from './write-pipeline.ts';

/** The outcome of a write; `height` is the register's height afterwards. */
export type WriteResult =
  | { readonly outcome: 'stored' | 'replayed' | 'divergent' | 'out_of_order'; readonly height: number }
  | { readonly outcome: 'invalid'; readonly height: number; readonly violations: readonly Violation[] };

export interface WriteDeps {
  readonly database: Database<RegisterSchema>;
  readonly writer: DocketWriter;
  readonly segments: Pick<Segments, 'of'>;
  readonly clock: Clock;
  readonly judges: DocketJudges;
  readonly loadWorkflows: LoadWorkflows;
  /** Called after the commit of a docket. */
  readonly onStored: (docket: {
    readonly registerId: string;
    readonly docketNumber: number;
    readonly transactions: readonly NewTransaction[];
  }) => void;
  /** Called after the commit of a docket, with its index rows, which are not written yet. */
  readonly onIndexable: (registerNo: number, docket: IndexedDocket) => void;
  /** Called when a stored docket changed the rules of the register. */
  readonly onRulesChanged: (registerId: string) => void;
  /** Called when a second certificate for a stored height halted the register. */
  readonly onHalted: (registerId: string, docketNumber: number) => void;
  /** Called with every result and its duration in seconds. */
  readonly onResult: (outcome: WriteResult['outcome'], seconds: number, transactions: number) => void;
}

export type WriteDocket = (bundle: DocketBundle) => Promise<WriteResult>;

/** A result, or `moved`: the head moved meanwhile and the docket must be judged again. */
type Attempt = WriteResult | 'moved';

/** Attempts when another process stores a docket between the read and the commit. */
const maxAttempts = 4;

const invalid = (height: number, violations: readonly Violation[]): WriteResult => ({
  outcome: 'invalid',
  height,
  violations,
});

/**
 * A refusal based on anything less than the stored register (a lagging cache, a speculative state) must be judged
 * again.
 */
function unlessInvalid(result: Attempt): Attempt {
  return result !== 'moved' && result.outcome === 'invalid' ? 'moved' : result;
}

/** Handles a docket number that is stored already. */
async function repeat(deps: WriteDeps, bundle: DocketBundle, state: ChainState): Promise<WriteResult> {
  const { height } = state;
  const { database, clock, judges } = deps;
  const repeated = await judgeRepeated({ database, clock, verifier: judges.verifier }, bundle, state);
  if (repeated.kind === 'invalid') return invalid(height, repeated.violations);
  if (repeated.kind !== 'conflict') return { outcome: repeated.kind, height };
  deps.onHalted(state.registerId, bundle.header.docketNumber);
  return { outcome: 'divergent', height };
}

const isOpen = ({ status }: ChainState): boolean => status !== 'Halted' && status !== 'Deleted';

/** A halted register accepts nothing until an operator resumes it; a deleted one accepts nothing at all. */
function assertOpen({ status }: ChainState): void {
  if (status === 'Halted') throw refusal('REGISTER_HALTED');
  if (status === 'Deleted') throw refusal('REGISTER_NOT_FOUND');
}

/** Refusals by the store, which the judges cannot see. */
const refusedByStore = {
  already_sealed: () => validationViolation('VAL_CHAIN_004', 'transactionIds'),
  second_successor: () => validationViolation('VAL_CHAIN_FORK', 'transactions'),
  replay: () => validationViolation('VAL_REPLAY_001', 'transactions'),
} as const;

/** Judges on top of a docket that is not stored yet; undefined when it must be judged against the stored state. */
async function judgeSpeculatively(deps: WriteDeps, bundle: DocketBundle, previous: PreviousWrite) {
  const base = await previous.judged;
  if (base === undefined) return undefined;
  const docket = readDocket(bundle);
  if (Array.isArray(docket)) return undefined;
  const judged = await judgeDocket(deps, docket, base);
  return isJudged(judged) ? judged : undefined;
}

/**
 * Stores one sealed docket after verifying all of it, in one SQL transaction. Safe to repeat and to race: the commit is
 * gated on the head that the docket was judged against. A docket is judged while its predecessor is being stored by
 * this process, and stored after it.
 */
export function createWriteDocket(deps: WriteDeps): WriteDocket {
  const { database, clock, judges } = deps;
  const chain = createChainCache({ database, clock, verifier: judges.verifier });
  const pipeline = createWritePipeline();

  async function store({ commit, header, speculative, changesRules }: Judged): Promise<Attempt> {
    const { registerId } = commit;
    const { height } = speculative.state;
    const docket = { ...commit.docket, stored_at: new Date(clock.nowMs()) };
    const outcome = await deps.writer.commit({ ...commit, docket });
    if (outcome === 'moved') return outcome;
    if (outcome !== 'stored') return invalid(height - 1, [refusedByStore[outcome]()]);
    chain.keep(speculative.state);
    deps.onIndexable(commit.registerNo, indexedDocketOf(commit));
    deps.onStored({ registerId, docketNumber: header.docketNumber, transactions: commit.transactions });
    if (changesRules) deps.onRulesChanged(registerId);
    return { outcome, height };
  }

  async function follow(bundle: DocketBundle, previous: PreviousWrite, slot: PipelineSlot): Promise<Attempt> {
    const judged = await judgeSpeculatively(deps, bundle, previous);
    if (judged !== undefined) slot.judged(judged.speculative);
    const isNext = await previous.stored;
    if (!isNext || judged === undefined) return 'moved';
    return unlessInvalid(await store(judged));
  }

  async function append(docket: ReadDocket, state: ChainState, slot: PipelineSlot): Promise<Attempt> {
    const judged = await judgeDocket(deps, docket, { state, transactions: new Map() });
    if (!isJudged(judged)) return invalid(state.height, judged);
    slot.judged(judged.speculative);
    return store(judged);
  }

  async function attempt(
    bundle: DocketBundle,
    known: 'cached' | 'fresh',
    slot: PipelineSlot,
  ): Promise<Attempt> {
    const { docketNumber, registerId } = bundle.header;
    const state = await chain.load(registerId, known);
    if (state === undefined) throw refusal('REGISTER_NOT_FOUND');
    // Only the database decides that a docket is behind or ahead, or that the register is closed: the cache may lag.
    const fits = docketNumber === state.height && isOpen(state);
    if (known === 'cached' && !fits) return 'moved';
    if (docketNumber < state.height) return repeat(deps, bundle, state);
    if (docketNumber > state.height) return { outcome: 'out_of_order', height: state.height };
    assertOpen(state);
    const docket = readDocket(bundle);
    if (Array.isArray(docket)) return invalid(state.height, docket);
    const result = await append(docket, state, slot);
    return known === 'cached' ? unlessInvalid(result) : result;
  }

  async function write(bundle: DocketBundle, slot: PipelineSlot): Promise<WriteResult> {
    const { previous } = slot;
    let result = previous ? await follow(bundle, previous, slot) : await attempt(bundle, 'cached', slot);
    for (let count = 1; result === 'moved' && count < maxAttempts; count += 1) {
      result = await attempt(bundle, 'fresh', slot);
    }
    if (result !== 'moved') return result;
    throw refusal('REGISTER_NOT_READY', {
      message: 'The register is being written concurrently; retry the docket.',
      retryAfterSeconds: 1,
    });
  }

  return async (bundle) => {
    const startedAt = performance.now();
    const slot = pipeline.begin(bundle.header.registerId, bundle.header.docketNumber);
    let isStored = false;
    try {
      const result = await write(bundle, slot);
      isStored = result.outcome === 'stored';
      deps.onResult(result.outcome, (performance.now() - startedAt) / 1000, bundle.transactions.length);
      return result;
    } finally {
      slot.end(isStored);
    }
  };
}

/** The violations of a result that is not an acceptance, for transports. */
export function violationsOf(result: WriteResult): readonly Violation[] {
  switch (result.outcome) {
    case 'stored':
    case 'replayed':
      return [];
    case 'divergent':
      return [violation('DOCKET_DIVERGENCE', 'Another docket is stored under this number.', 'hash')];
    case 'out_of_order':
      return [violation('DOCKET_OUT_OF_ORDER', `Expected docket ${result.height}.`, 'docketNumber')];
    case 'invalid':
      return result.violations;
  }
}
