import { isAlgorithm } from '#core/crypto/algorithm.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import { parseControlRecord } from '#core/ledger/control-record.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { genesisRules } from '#core/ledger/governance/rules.ts';
import { parseRules } from '#core/ledger/governance/rules-json.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { untilProjected } from '../../queries/projection/freshness.ts';
import { findGenesisPayload } from '../../registers/genesis/store.ts';
import { visibleRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { type DocketFacts, type FoldedDocket, foldDocket, foldGenesis, type PlacedRecord } from './fold.ts';
import { projectionOf } from './project.ts';
import {
  backfillProjections,
  findRulesText,
  listSealedControls,
  type Projection,
  type SealedControl,
} from './store.ts';

export interface RulesDeps {
  readonly database: Database<RegisterSchema>;
  readonly verifier: Verifier;
  readonly clock: Clock;
}

type RegisterFacts = Pick<Register, 'registerNo' | 'registerId' | 'height' | 'systemKey'>;

const controlsInStep = 200;

/** Parses stored rules. */
export function readRules(text: string): LedgerRules {
  return parseRules(JSON.parse(text));
}

function corrupt(registerId: string): AppError {
  return new AppError('internal', 'INTERNAL_ERROR', `Docket 0 of ${registerId} holds no control record.`);
}

function placedOf(row: SealedControl): PlacedRecord {
  return { position: row.position, record: parseRecord(row.record), payload: row.payload };
}

/** Sealed control transactions by docket, oldest first. */
async function* sealedDockets(deps: RulesDeps, registerNo: number): AsyncGenerator<DocketFacts> {
  let after = { docketNumber: -1, position: 0 };
  let open: (DocketFacts & { readonly records: PlacedRecord[] }) | undefined;
  for (;;) {
    const rows = await listSealedControls(deps.database.read, registerNo, after, controlsInStep);
    for (const row of rows) {
      const { docketNumber, timestamp, position } = row;
      after = { docketNumber, position };
      if (open !== undefined && open.docketNumber !== docketNumber) {
        yield open;
        open = undefined;
      }
      open ??= { docketNumber, timestamp, records: [] };
      open.records.push(placedOf(row));
    }
    if (rows.length < controlsInStep) break;
  }
  if (open !== undefined) yield open;
}

/**
 * Rebuilds the rules of a register from its sealed control transactions, as anyone with the chain can, and stores them.
 * Transactions that were sealed before the rules existed and violate them have no effect.
 */
export async function replayRules(deps: RulesDeps, register: RegisterFacts): Promise<LedgerRules> {
  await untilProjected(deps.database.read, register);
  let rules: LedgerRules | undefined;
  const projections: Projection[] = [];
  for await (const facts of sealedDockets(deps, register.registerNo)) {
    const folded: FoldedDocket | readonly unknown[] | undefined =
      rules === undefined ? foldGenesis(facts) : foldDocket(rules, facts, deps.verifier, true);
    if (folded === undefined || !('after' in folded)) throw corrupt(register.registerId);
    rules = folded.after;
    const projection = projectionOf(folded);
    if (projection !== undefined) projections.push(projection);
  }
  if (rules === undefined) throw corrupt(register.registerId);
  await backfillProjections(deps.database, register, projections, new Date(deps.clock.nowMs()));
  return rules;
}

/** Before docket 0 is sealed, the rules are those that its genesis will establish. */
async function initialRules(deps: RulesDeps, register: RegisterFacts): Promise<LedgerRules> {
  const payload = await findGenesisPayload(deps.database.read, register.registerNo);
  const { publicKey, algorithm } = register.systemKey;
  if (payload === undefined || !isAlgorithm(algorithm)) throw refusal('REGISTER_NOT_READY');
  return genesisRules(parseControlRecord(toValue(scanJson(payload))), { publicKey, algorithm });
}

/** The rules of a register after its last docket. */
export async function loadRules(deps: RulesDeps, register: RegisterFacts): Promise<LedgerRules> {
  const text = await findRulesText(deps.database.read, register.registerNo);
  if (text !== undefined) return readRules(text);
  return register.height === 0 ? initialRules(deps, register) : replayRules(deps, register);
}

/** `resource` of a route: the register of the path if the caller may read it, with its rules. */
export function visibleRules(deps: RulesDeps) {
  const findRegister = visibleRegister(() => deps.database.read);
  return async (request: Parameters<typeof findRegister>[0]) => {
    const register = await findRegister(request);
    return { register, rules: await loadRules(deps, register) };
  };
}
