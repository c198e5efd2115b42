import type { Verifier } from '#core/crypto/verify.ts';
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
import { failure } from '../../errors.ts';
import type { HeightRules } from '../consensus/members.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { type Rules, rulesOf } from './rules.ts';

/** The state of a register before its next docket: everything that validity may depend on. */
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
  /** The result of the control transactions of dockets 0 to height - 1; the members below follow from it. */
  readonly ledger: LedgerRules;
  /** The validator set of this height, sorted by validator id. */
  readonly members: readonly ValidatorMember[];
  readonly membersHash: string;
  readonly policy: RegisterPolicy;
  readonly rules: Rules;
  /** Verifies the approvals and proofs of possession in control transactions. */
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

/** Throws AppError for inconsistent facts. */
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

/** The members and limits that follow from a register's rules. */
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

/** The governance form of a pooled control transaction. */
export function controlOf({
  record,
  payload,
}: Pick<PooledTransaction, 'record' | 'payload'>): ControlTransaction {
  return controlTransaction(parseRecord(record), payload);
}

/** The control transactions of a docket, in order. */
export function controlsOf(transactions: readonly PooledTransaction[]): ControlTransaction[] {
  return transactions.filter((transaction) => transaction.type === 'Control').map(controlOf);
}

/**
 * The state after a decided docket. Its control transactions change members, quorum, policy and roster from the next docket
 * on, not within the docket itself.
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
  throw failure('DOCKET_NOT_JUDGED', { message: reason, violations: fold.violations });
}

/** Whether a validator decides the register's next docket. */
export function isMember(
  { state }: { readonly state: Pick<RegisterState, 'members'> },
  validatorId: string,
): boolean {
  return state.members.some((member) => member.validatorId === validatorId);
}

/** The consensus rules of a state's height. */
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
