import type { Verifier } from '#core/crypto/verify.ts';
import { AppError } from '#core/errors/errors.ts';
import { quorum, type ValidatorMember, validatorSetHash } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { applyControls } from '#core/ledger/governance/apply.ts';
import { type ControlTransaction, controlTransaction } from '#core/ledger/governance/control.ts';
import { activeMembers, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { Frontier } from '#core/ledger/merkle.ts';
import type { RegisterPolicy } from '#core/ledger/policy.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { ZERO_HASH } from '#core/ledger/register-id.ts';
import type { HeightRules } from '../consensus/members.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { type Rules, rulesOf } from './rules.ts';

/** What is known of a register before the next docket: everything that validity may depend on (H6). */
export interface RegisterState {
  readonly registerId: string;
  /** The installation that created the register. */
  readonly networkId: string;
  /** Number of decided dockets, which is the number of the next one. */
  readonly height: number;
  readonly headHash: string;
  /** Timestamp of the head; empty before genesis. */
  readonly headTimestamp: string;
  readonly log: Frontier;
  /** What the control transactions of dockets 0 to height - 1 decided; the members below follow from it. */
  readonly ledger: LedgerRules;
  /** V(height), sorted by validator id. */
  readonly members: readonly ValidatorMember[];
  readonly membersHash: string;
  readonly policy: RegisterPolicy;
  readonly rules: Rules;
  /** Verifies what control transactions carry: approvals and proofs of possession. */
  readonly verifier: Verifier;
}

export interface StateFacts {
  readonly registerId: string;
  readonly networkId: string;
  readonly height: number;
  readonly headHash: string;
  readonly headTimestamp: string;
  readonly logFrontier: readonly Uint8Array[];
  readonly ledger: LedgerRules;
}

/** Throws AppError when the facts do not fit together. */
export function buildState(facts: StateFacts, verifier: Verifier): RegisterState {
  return {
    registerId: facts.registerId,
    networkId: facts.networkId,
    height: facts.height,
    headHash: facts.height === 0 ? ZERO_HASH : facts.headHash,
    headTimestamp: facts.height === 0 ? '' : facts.headTimestamp,
    log: Frontier.parse(facts.height, facts.logFrontier),
    verifier,
    ...derived(facts.ledger),
  };
}

/** What follows from the rules of a register. */
function derived(ledger: LedgerRules) {
  const members = activeMembers(ledger);
  return {
    ledger,
    members,
    membersHash: validatorSetHash(members),
    policy: ledger.policy,
    rules: rulesOf(ledger.policy),
  };
}

export function keyName(algorithm: string, publicKey: string): string {
  return `${algorithm}:${publicKey}`;
}

/** A pooled control transaction as the rules judge it. */
export function controlOf({
  record,
  payload,
}: Pick<PooledTransaction, 'record' | 'payload'>): ControlTransaction {
  return controlTransaction(parseRecord(record), payload);
}

/** The control transactions among those of a docket, in its order. */
export function controlsOf(transactions: readonly PooledTransaction[]): ControlTransaction[] {
  return transactions.filter((transaction) => transaction.type === 'Control').map(controlOf);
}

/**
 * The state after a decided docket: members, quorum, policy and roster are those of its control transactions from the
 * next docket on, and not before (notes/ledger.md L-104, L-114).
 * @throws AppError internal DOCKET_NOT_JUDGED for a docket that judgeDocket refuses
 */
export function applyDocket(
  state: RegisterState,
  { header, transactions }: { header: DocketHeader; transactions: readonly PooledTransaction[] },
): RegisterState {
  const log = state.log.clone();
  log.append(logLeaf(header));
  const ledger = rulesAfter(state, header, transactions);
  return {
    ...state,
    height: header.docketNumber + 1,
    headHash: header.hash,
    headTimestamp: header.timestamp,
    log,
    ...(ledger === state.ledger ? {} : derived(ledger)),
  };
}

function rulesAfter(
  state: RegisterState,
  { docketNumber, timestamp }: DocketHeader,
  transactions: readonly PooledTransaction[],
): LedgerRules {
  if (docketNumber === 0) return state.ledger;
  const context = { docketNumber, timestamp, verifier: state.verifier };
  const fold = applyControls(state.ledger, controlsOf(transactions), context);
  if (!('violations' in fold)) return fold.rules;
  const [first] = fold.violations;
  const reason = `Docket ${docketNumber} holds ${fold.txId}, which may not be sealed: ${first?.message}`;
  throw new AppError('internal', 'DOCKET_NOT_JUDGED', reason, { violations: fold.violations });
}

/** What the consensus machine needs of a state. */
export function heightRules(state: RegisterState, self: string): HeightRules {
  const members = state.members.map((member) => member.validatorId);
  return {
    height: state.height,
    self,
    members,
    quorum: quorum(members.length, state.rules.signatureThresholdMin),
    timers: { proposeMs: state.rules.leaderTimeoutMs, voteMs: 1000, stepMs: 500 },
  };
}
