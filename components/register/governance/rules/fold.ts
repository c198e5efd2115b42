import type { Verifier } from '#core/crypto/verify.ts';
import type { Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { beginDocket, foldControl } from '#core/ledger/governance/apply.ts';
import {
  type ControlContext,
  controlTransaction,
  type ProposalChange,
  type RulesChange,
} from '#core/ledger/governance/control.ts';
import { judgeCrypto } from '#core/ledger/governance/policies.ts';
import { genesisRules, type LedgerRules } from '#core/ledger/governance/rules.ts';
import type { SealedRecord } from '#core/ledger/record.ts';
import { findControlRecord } from '#core/ledger/verification/genesis.ts';

/** One sealed transaction with its place in the docket. */
export interface PlacedRecord {
  readonly position: number;
  readonly record: SealedRecord;
  readonly payload: Uint8Array;
}

/** The effect of one control transaction on the rules. */
export interface FoldStep {
  readonly placed: PlacedRecord;
  readonly before: LedgerRules;
  readonly after: LedgerRules;
  /** undefined for control transactions that change no rules */
  readonly change: RulesChange | undefined;
}

/** The result of folding a docket into the rules. */
export interface FoldedDocket {
  readonly docketNumber: number;
  /** of the docket */
  readonly timestamp: string;
  /** undefined before docket 0 */
  readonly before: LedgerRules | undefined;
  readonly after: LedgerRules;
  readonly steps: readonly FoldStep[];
  readonly expired: readonly ProposalChange[];
  /** validators that the end of a transition removed from the set */
  readonly ejected: readonly string[];
  /** the genesis transaction, in docket 0 */
  readonly genesis: PlacedRecord | undefined;
}

export interface DocketFacts {
  readonly docketNumber: number;
  readonly timestamp: string;
  readonly records: readonly PlacedRecord[];
}

/** The initial rules from docket 0; undefined when it holds no valid genesis. */
export function foldGenesis(facts: DocketFacts): FoldedDocket | undefined {
  const [genesis] = facts.records;
  const record = genesis && findControlRecord(genesis.payload);
  const signer = genesis?.record.signatures[0];
  if (genesis === undefined || record === undefined || signer === undefined) return undefined;
  const { docketNumber, timestamp } = facts;
  const after = genesisRules(record, signer);
  return { docketNumber, timestamp, before: undefined, after, steps: [], expired: [], ejected: [], genesis };
}

const place = (position: number, found: Violation): Violation => ({
  ...found,
  field: `transactions[${position}]${found.field === undefined ? '' : `.${found.field}`}`,
});

/** Algorithms that the crypto policy in force does not allow; warnings do not refuse a transaction. */
function judgeAlgorithms(rules: LedgerRules, { records }: DocketFacts): Violation[] {
  return records.flatMap(({ record, position }) => {
    const algorithms = record.signatures.map((signature) => signature.algorithm);
    return judgeCrypto(rules.cryptoPolicy, algorithms)
      .filter((found) => found.severity !== 'Warning')
      .map((found) => place(position, found));
  });
}

/**
 * Folds the control transactions of a docket into the rules before it, in docket order. Violations refuse the docket;
 * with `lenient` an invalid transaction has no effect instead, as needed for history from before the rules.
 */
export function foldDocket(
  rules: LedgerRules,
  facts: DocketFacts,
  verifier: Verifier,
  lenient = false,
): FoldedDocket | Violation[] {
  const { docketNumber, timestamp } = facts;
  const context: ControlContext = { docketNumber, timestamp, verifier };
  const strange = lenient ? [] : judgeAlgorithms(rules, facts);
  if (strange.length > 0) return strange;
  let fold = beginDocket(rules, context);
  const steps: FoldStep[] = [];
  for (const placed of facts.records.filter((one) => one.record.type === 'Control')) {
    const next = foldControl(fold, controlTransaction(placed.record, placed.payload), context);
    if ('violations' in next) {
      if (lenient) continue;
      return next.violations.map((found) => place(placed.position, found));
    }
    const change = next.changes.length > fold.changes.length ? next.changes.at(-1) : undefined;
    steps.push({ placed, before: fold.rules, after: next.rules, change });
    fold = next;
  }
  const { rules: after, expired, ejected } = fold;
  return { docketNumber, timestamp, before: rules, after, steps, expired, ejected, genesis: undefined };
}

/** Violations for a docket without a readable genesis. */
export function noGenesis(): Violation[] {
  return [validationViolation('VAL_PERM_002', 'transactions', 'Docket 0 holds no control record.')];
}
