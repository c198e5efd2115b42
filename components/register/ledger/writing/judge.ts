import { isStep } from '#core/blueprint/steps/judge.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { concatBytes } from '#core/encoding/text.ts';
import type { Violation } from '#core/errors/errors.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import type { Database } from '#kit/db/db.ts';
import { publicationsOf } from '../../blueprints/publications/record.ts';
import type { LoadWorkflows } from '../../blueprints/publications/workflows.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { type FoldedDocket, foldDocket, foldGenesis, noGenesis } from '../../governance/rules/fold.ts';
import { projectionOf } from '../../governance/rules/project.ts';
import { lastByAddress, type ParticipantKey, participantKeysOf } from '../../queries/participants/record.ts';
import { indexRowOf } from '../../queries/projection/rows.ts';
import { sealedFacts } from '../sealed/store.ts';
import type { Segments } from '../segments/segments.ts';
import { stateAfter } from './chain.ts';
import type { DocketCommit, NewTransaction } from './commit/docket-commit.ts';
import { type PredecessorFacts, type Predecessors, pinsOf, predecessorFactsOf } from './steps.ts';
import {
  type ChainState,
  type DocketJudges,
  isControlClass,
  predecessorsOf,
  type ReadDocket,
  verifyDocket,
} from './verify.ts';
import type { SpeculativeState } from './write-pipeline.ts';

interface JudgeDeps {
  readonly database: Pick<Database<RegisterSchema>, 'read'>;
  readonly segments: Pick<Segments, 'of'>;
  readonly judges: DocketJudges;
  readonly loadWorkflows: LoadWorkflows;
}

/** A docket that may be stored. */
export interface Judged {
  /** The rows to store; the writer sets `stored_at`. */
  readonly commit: Omit<DocketCommit, 'docket'> & {
    readonly docket: Omit<DocketCommit['docket'], 'stored_at'>;
  };
  readonly header: DocketHeader;
  readonly changesRules: boolean;
  /** The register's state after the docket. */
  readonly speculative: SpeculativeState;
}

/** Distinguishes an accepted docket from violations. */
export function isJudged(judged: Judged | readonly Violation[]): judged is Judged {
  return 'commit' in judged;
}

function rowsOf(docket: ReadDocket, predecessors: Predecessors): NewTransaction[] {
  const types = new Map([...predecessors].map(([id, { type }]) => [id, type]));
  for (const record of docket.records) types.set(record.txId, record.type);
  return docket.records.map((record, index) => {
    const previous = record.previousTransactionId;
    const previousType = previous === undefined ? undefined : types.get(previous);
    const transaction = docket.bundle.transactions[index];
    const onlySuccessor = previousType !== undefined && !isControlClass(previousType);
    return {
      ...indexRowOf(record),
      onlySuccessor,
      replayKey: onlySuccessor ? undefined : findReplayKey(record),
      isStep: isStep(record),
      leaf: docket.leaves[index] ?? new Uint8Array(),
      payloadHashForm: transaction?.payloadHashForm ?? '',
      record: transaction?.record ?? new Uint8Array(),
      payload: transaction?.payload ?? new Uint8Array(),
    };
  });
}

/** The rules after the docket, or the violations for which they refuse it. */
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

/** The keys that the docket's participants published: the last one of each address. */
function participantsOf(docket: ReadDocket): ParticipantKey[] {
  const payloadOf = payloadIn(docket);
  return lastByAddress(
    docket.records.flatMap((record, index) => participantKeysOf(record, payloadOf(index))),
  );
}

function judgedOf(
  docket: ReadDocket,
  state: ChainState,
  found: { readonly folded: FoldedDocket; readonly rows: readonly NewTransaction[] },
): Judged {
  const { folded, rows } = found;
  const { header, certificate, attestations } = docket.bundle;
  const frontier = state.frontier.clone();
  const nodes = frontier.append(logLeaf(header));
  return {
    header,
    changesRules: folded.after !== folded.before,
    speculative: {
      state: stateAfter(state, header, { rules: folded.after, frontier }),
      transactions: new Map(docket.records.map((record) => [record.txId, predecessorFactsOf(record)])),
    },
    commit: {
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
      },
      transactions: rows,
      frontier: concatBytes(frontier.serialise()),
      nodes,
      attestations,
      projection: projectionOf(folded),
      participants: participantsOf(docket),
      publications: publicationsOf(docket.records, payloadIn(docket), header.timestamp),
    },
  };
}

/** `earlier` holds transactions that are not stored yet. */
async function findPredecessors(
  { database, segments }: JudgeDeps,
  docket: ReadDocket,
  { state, transactions: earlier }: SpeculativeState,
): Promise<Predecessors> {
  const found = new Map<string, PredecessorFacts>();
  const sealed: string[] = [];
  for (const id of predecessorsOf(docket)) {
    const facts = earlier.get(id);
    if (facts === undefined) sealed.push(id);
    else found.set(id, facts);
  }
  const register = { registerNo: state.registerNo, keySegments: segments.of(state) };
  for (const [id, facts] of await sealedFacts(database.read, register, sealed)) found.set(id, facts);
  return found;
}

/** Judges a docket completely against the given state: returns the rows to store, or the violations. */
export async function judgeDocket(
  deps: JudgeDeps,
  docket: ReadDocket,
  base: SpeculativeState,
): Promise<Judged | readonly Violation[]> {
  const { state } = base;
  const predecessors = await findPredecessors(deps, docket, base);
  const pins = pinsOf(docket);
  const workflows =
    pins.length === 0 ? new Map<string, undefined>() : await deps.loadWorkflows(state.registerNo, pins);
  const violations = await verifyDocket(docket, state, predecessors, { ...deps.judges, workflows });
  if (violations.length > 0) return violations;
  const folded = fold(docket, state, deps.judges.verifier);
  if (Array.isArray(folded)) return folded;
  return judgedOf(docket, state, { folded, rows: rowsOf(docket, predecessors) });
}
