import { quorum, sortMembers, type ValidatorMember, validatorSetHash } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { Frontier } from '#core/ledger/merkle.ts';
import type { RegisterPolicy } from '#core/ledger/policy.ts';
import { ZERO_HASH } from '#core/ledger/register-id.ts';
import type { HeightRules } from '../consensus/members.ts';
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
  /** V(height), sorted by validator id. */
  readonly members: readonly ValidatorMember[];
  readonly membersHash: string;
  readonly policy: RegisterPolicy;
  readonly rules: Rules;
  /** `algorithm:publicKey` of everybody on the roster. */
  readonly rosterKeys: ReadonlySet<string>;
}

export interface StateFacts {
  readonly registerId: string;
  readonly networkId: string;
  readonly height: number;
  readonly headHash: string;
  readonly headTimestamp: string;
  readonly logFrontier: readonly Uint8Array[];
  readonly members: readonly ValidatorMember[];
  readonly policy: RegisterPolicy;
  readonly roster: readonly { readonly publicKey: string; readonly algorithm: string }[];
}

/** Throws AppError when the facts do not fit together. */
export function buildState(facts: StateFacts): RegisterState {
  const members = sortMembers(facts.members);
  return {
    registerId: facts.registerId,
    networkId: facts.networkId,
    height: facts.height,
    headHash: facts.height === 0 ? ZERO_HASH : facts.headHash,
    headTimestamp: facts.height === 0 ? '' : facts.headTimestamp,
    log: Frontier.parse(facts.height, facts.logFrontier),
    members,
    membersHash: validatorSetHash(members),
    policy: facts.policy,
    rules: rulesOf(facts.policy),
    rosterKeys: new Set(facts.roster.map(({ algorithm, publicKey }) => keyName(algorithm, publicKey))),
  };
}

export function keyName(algorithm: string, publicKey: string): string {
  return `${algorithm}:${publicKey}`;
}

/** The state after a decided docket. */
export function applyDocket(state: RegisterState, header: DocketHeader): RegisterState {
  const log = state.log.clone();
  log.append(logLeaf(header));
  return {
    ...state,
    height: header.docketNumber + 1,
    headHash: header.hash,
    headTimestamp: header.timestamp,
    log,
  };
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
