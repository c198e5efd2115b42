import type { Verifier } from '#core/crypto/verify.ts';
import { concatBytes } from '#core/encoding/text.ts';
import { findTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import { type Violation, violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { publicationsOf } from '../blueprints/record.ts';
import { LONGEST_INDEXED_BYTES, type RegisterSchema } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { lastByAddress, type ParticipantKey, participantKeysOf } from '../participants/record.ts';
import { type FoldedDocket, foldDocket, foldGenesis, noGenesis } from '../rules/fold.ts';
import { projectionOf } from '../rules/project.ts';
import type { Segments } from '../segments/segments.ts';
import { sealedFacts } from '../transactions/store.ts';
import { createChainCache } from './chain.ts';
import type { DocketCommit, NewTransaction } from './commit.ts';
import type { DocketBundle } from './docket.ts';
import { judgeRepeated } from './replay.ts';
import type { DocketWriter } from './store.ts';
import {
  type ChainState,
  type DocketJudges,
  isControlClass,
  type PredecessorTypes,
  predecessorsOf,
  type ReadDocket,
  readDocket,
  verifyDocket,
} from './verify.ts';

/** What became of a docket; `height` is the register's after it. */
export type WriteResult =
  | { readonly outcome: 'stored' | 'replayed' | 'divergent' | 'out_of_order'; readonly height: number }
  | { readonly outcome: 'invalid'; readonly height: number; readonly violations: readonly Violation[] };

export interface WriteDeps {
  readonly database: Database<RegisterSchema>;
  readonly writer: DocketWriter;
  readonly segments: Pick<Segments, 'of'>;
  readonly clock: Clock;
  readonly judges: DocketJudges;
  /** Told after the commit of a docket. */
  readonly onStored: (registerId: string, txIds: readonly string[]) => void;
  /** Told when a stored docket changed what the register decides of itself. */
  readonly onRulesChanged: (registerId: string) => void;
  /** Told when a second certificate for a stored height halted the register. */
  readonly onHalted: (registerId: string, docketNumber: number) => void;
  /** Told of every result, with the time it took in seconds. */
  readonly onResult: (outcome: WriteResult['outcome'], seconds: number, transactions: number) => void;
}

export type WriteDocket = (bundle: DocketBundle) => Promise<WriteResult>;

/** Times somebody else may store a docket between our look and our commit. */
const maxAttempts = 4;

/** Index columns are text, which cannot hold NUL; what was signed stands in the record whatever it holds. */
function indexText(text: string | undefined): string | undefined {
  return text?.includes('\u0000') ? undefined : text;
}

/** Recipients as the index takes them: each once, and none that is longer than an entry may be. */
function indexRecipients(recipients: readonly string[]): string[] {
  return [...new Set(recipients)].filter(
    (one) => Buffer.byteLength(one) <= LONGEST_INDEXED_BYTES && !one.includes('\u0000'),
  );
}

function rowsOf(docket: ReadDocket, predecessors: PredecessorTypes): NewTransaction[] {
  const types = new Map(predecessors);
  for (const record of docket.records) types.set(record.txId, record.type);
  return docket.records.map((record, index) => {
    const previous = record.previousTransactionId;
    const previousType = previous === undefined ? undefined : types.get(previous);
    const transaction = docket.bundle.transactions[index];
    const onlySuccessor = previousType !== undefined && !isControlClass(previousType);
    return {
      txId: record.txId,
      type: record.type,
      senderAddress: record.senderAddress,
      recipients: indexRecipients(record.recipients),
      blueprintId: indexText(record.blueprintId),
      actionId: indexText(record.actionId),
      previousTxId: previous,
      onlySuccessor,
      replayKey: onlySuccessor ? undefined : findReplayKey(record),
      createdMicros: Number(ticksToMicros(findTimestamp(record.createdAt) ?? 0n)),
      leaf: docket.leaves[index] ?? new Uint8Array(),
      payloadHashForm: transaction?.payloadHashForm ?? '',
      record: transaction?.record ?? new Uint8Array(),
      payload: transaction?.payload ?? new Uint8Array(),
    };
  });
}

/** A docket that may be stored, with what it makes of the rules. */
interface Judged {
  readonly docket: ReadDocket;
  readonly folded: FoldedDocket;
  readonly rows: readonly NewTransaction[];
}

/** The rules after the docket, or why they refuse it. */
function fold(docket: ReadDocket, state: ChainState, verifier: Verifier): FoldedDocket | Violation[] {
  const { docketNumber, timestamp } = docket.bundle.header;
  const records = docket.records.map((record, position) => ({
    position,
    record,
    payload: docket.bundle.transactions[position]?.payload ?? new Uint8Array(),
  }));
  const facts = { docketNumber, timestamp, records };
  if (state.rules !== undefined) return foldDocket(state.rules, facts, verifier);
  return foldGenesis(facts) ?? noGenesis();
}

const payloadIn =
  ({ bundle }: ReadDocket) =>
  (position: number): Uint8Array =>
    bundle.transactions[position]?.payload ?? new Uint8Array();

/** The keys that the docket's participants published: of each address the last ones. */
function participantsOf(docket: ReadDocket): ParticipantKey[] {
  const payloadOf = payloadIn(docket);
  return lastByAddress(
    docket.records.flatMap((record, index) => participantKeysOf(record, payloadOf(index))),
  );
}

function commitOf({ docket, folded, rows }: Judged, state: ChainState, storedAt: Date): DocketCommit {
  const { header, certificate, attestations } = docket.bundle;
  const log = state.frontier.clone();
  const nodes = log.append(logLeaf(header));
  return {
    registerNo: state.registerNo,
    registerId: state.registerId,
    segment: state.segment,
    docket: {
      docket_number: header.docketNumber,
      hash: header.hash,
      previous_hash: header.previousHash,
      merkle_root: header.merkleRoot,
      log_root: header.logRoot,
      validator_set_hash: header.validatorSetHash,
      timestamp: header.timestamp,
      validator_address: header.validatorAddress,
      is_genesis: header.isGenesis,
      genesis_config: header.genesisConfig ?? null,
      size_bytes: header.sizeBytes,
      transaction_count: rows.length,
      certificate: JSON.stringify(certificate),
      stored_at: storedAt,
    },
    transactions: rows,
    frontier: concatBytes(log.serialise()),
    nodes,
    attestations,
    projection: projectionOf(folded),
    participants: participantsOf(docket),
    publications: publicationsOf(docket.records, payloadIn(docket), header.timestamp),
  };
}

const invalid = (height: number, violations: readonly Violation[]): WriteResult => ({
  outcome: 'invalid',
  height,
  violations,
});

/** A docket number that is stored already. */
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

/** A halted register takes nothing until an operator resumes it, a deleted one nothing at all. */
function assertOpen({ status }: ChainState): void {
  if (status === 'Halted') throw refusal('REGISTER_HALTED');
  if (status === 'Deleted') throw refusal('REGISTER_NOT_FOUND');
}

/**
 * Stores one sealed docket after verifying all of it, in one SQL commit (H8). Safe to repeat and to race: the commit
 * is gated on the head that the docket was judged against.
 */
export function createWriteDocket(deps: WriteDeps): WriteDocket {
  const { database, clock, judges } = deps;
  const chain = createChainCache({ database, clock, verifier: judges.verifier });

  async function predecessorTypes(docket: ReadDocket, state: ChainState): Promise<PredecessorTypes> {
    const { registerNo } = state;
    const register = { registerNo, places: deps.segments.of(state) };
    const facts = await sealedFacts(deps.database.read, register, predecessorsOf(docket));
    return new Map([...facts].map(([id, fact]) => [id, fact.type]));
  }

  async function append(docket: ReadDocket, state: ChainState): Promise<WriteResult | 'moved'> {
    const predecessors = await predecessorTypes(docket, state);
    const violations = await verifyDocket(docket, state, predecessors, deps.judges);
    if (violations.length > 0) return invalid(state.height, violations);
    const folded = fold(docket, state, judges.verifier);
    if (Array.isArray(folded)) return invalid(state.height, folded);
    const judged = { docket, folded, rows: rowsOf(docket, predecessors) };
    const outcome = await deps.writer.commit(commitOf(judged, state, new Date(clock.nowMs())));
    switch (outcome) {
      case 'stored':
        chain.advance(state, docket.bundle.header, folded.after);
        deps.onStored(state.registerId, docket.bundle.header.transactionIds);
        if (folded.after !== folded.before) deps.onRulesChanged(state.registerId);
        return { outcome, height: state.height + 1 };
      case 'moved':
        return outcome;
      case 'already_sealed':
        return invalid(state.height, [validationViolation('VAL_CHAIN_004', 'transactionIds')]);
      case 'second_successor':
        return invalid(state.height, [validationViolation('VAL_CHAIN_FORK', 'transactions')]);
      case 'replay':
        return invalid(state.height, [validationViolation('VAL_REPLAY_001', 'transactions')]);
    }
  }

  async function attempt(bundle: DocketBundle, known: 'cached' | 'fresh'): Promise<WriteResult | 'moved'> {
    const { docketNumber, registerId } = bundle.header;
    const state = await chain.load(registerId, known);
    if (state === undefined) throw refusal('REGISTER_NOT_FOUND');
    // Only the database can say that a docket is behind or ahead, or that the register takes none: the cache may lag.
    const fits = docketNumber === state.height && isOpen(state);
    if (known === 'cached' && !fits) return 'moved';
    if (docketNumber < state.height) return repeat(deps, bundle, state);
    if (docketNumber > state.height) return { outcome: 'out_of_order', height: state.height };
    assertOpen(state);
    const docket = readDocket(bundle);
    if (Array.isArray(docket)) return invalid(state.height, docket);
    const result = await append(docket, state);
    // What a lagging cache refuses must be judged again against the register as it is.
    return known === 'cached' && result !== 'moved' && result.outcome === 'invalid' ? 'moved' : result;
  }

  return async (bundle) => {
    const startedAt = performance.now();
    for (let count = 0; count < maxAttempts; count += 1) {
      const result = await attempt(bundle, count === 0 ? 'cached' : 'fresh');
      if (result === 'moved') continue;
      deps.onResult(result.outcome, (performance.now() - startedAt) / 1000, bundle.transactions.length);
      return result;
    }
    throw refusal('REGISTER_NOT_READY', {
      message: 'The head of the register moves too fast.',
      retryAfterSeconds: 1,
    });
  };
}

/** The refusals of a result that is not an acceptance, for transports that answer them. */
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
