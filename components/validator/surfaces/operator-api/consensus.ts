import type { z } from 'zod';
import { walletAddress } from '#core/crypto/address.ts';
import type { Algorithm } from '#core/crypto/algorithm.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { compareCodeUnits } from '#core/encoding/text.ts';
import { faultTolerance } from '#core/ledger/consensus.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { DrainFacts } from '../../chain/draining/drain.ts';
import type { Budget } from '../../chain/pool/budget.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { OperationalMember } from '../../network/peering/operational-members.ts';
import type { ValidatorReport } from '../reports/report.ts';
import { isVoting } from '../reports/sets.ts';
import type { drainSchema, OwnRegister, validatorConsensusSchema } from './schemas.ts';

/** Version of the protocol between validators. */
const PROTOCOL_VERSION = 1;
/** Number of latest log roots in the answer, so that members at slightly different heights can be compared. */
const maxRoots = 16;

export interface MemberIdentity {
  readonly validatorId: string;
  readonly publicKey: string;
  readonly algorithm: Algorithm;
  /** host:port, as announced */
  readonly endpoint: string;
}

export interface ConsensusDeps {
  readonly identity: MemberIdentity;
  readonly budget: Budget;
  readonly drain: { readonly facts: DrainFacts };
  report(registerId: string): ValidatorReport;
  getRegister(registerId: string): RegisterChain | undefined;
  /** The members of a register and when each was last heard. */
  operational(registerId: string): readonly OperationalMember[];
}

function instant(ms: number | undefined): string | null {
  return ms === undefined || ms === 0 ? null : new Date(ms).toISOString();
}

export function presentDrain({
  sinceMs,
  alone,
  ...facts
}: DrainFacts): ReadonlyDeep<z.output<typeof drainSchema>> {
  return { ...facts, since: instant(sinceMs), alone };
}

/**
 * The number of decided dockets that a member lacks. Of the heights that peers report, the highest that at least one honest
 * member must have confirmed counts, so that faulty peers alone cannot make this member appear behind.
 */
export function docketsBehind(own: number, others: readonly number[]): number {
  const tolerated = faultTolerance(others.length + 1);
  const believable = others.toSorted((left, right) => right - left)[tolerated] ?? 0;
  return Math.max(0, believable - own);
}

function rootsOf(register: RegisterChain): { height: number; root: string }[] {
  const { height } = register.state;
  const from = Math.max(1, height - maxRoots + 1);
  return Array.from({ length: Math.max(0, height - from + 1) }, (_, index) => from + index).flatMap(
    (size) => {
      const root = register.rootAt(size);
      return root === undefined ? [] : { height: size, root };
    },
  );
}

function roleOf(
  report: ValidatorReport['registers'][number],
  self: string,
): 'proposer' | 'voter' | 'observer' {
  if (!isVoting(report) || !report.members.includes(self)) return 'observer';
  return report.proposer === self ? 'proposer' : 'voter';
}

function presentRegister(deps: ConsensusDeps, report: ValidatorReport['registers'][number]): OwnRegister {
  const { registerId, status, reason, height, round, step, proposer, quorum, members } = report;
  const { validatorId } = deps.identity;
  const register = deps.getRegister(registerId);
  const seen = deps.operational(registerId);
  const others = seen.filter((each) => each.validatorId !== validatorId).map((each) => each.height);
  const known = register?.state.ledger.validators.find((each) => each.validatorId === validatorId);
  return {
    registerId,
    // Reports of other validators may hold other texts.
    status: status as OwnRegister['status'],
    reason,
    membership: known?.status ?? 'None',
    isMember: members.includes(validatorId),
    height,
    storedHeight: report.storedHeight,
    round,
    step,
    role: roleOf(report, validatorId),
    proposer,
    isProposer: proposer === validatorId,
    quorum,
    members,
    operational: seen.filter(({ isOperational }) => isOperational).length,
    behind: docketsBehind(register?.state.height ?? 0, others),
    mempool: { pending: report.memPoolSize, bytes: register?.pool.heldBytes ?? 0 },
    unstored: register?.facts.unstored ?? 0,
    lastCommitAt: instant(report.decidedAtMs),
    headHash: height === 0 ? '' : (register?.state.headHash ?? ''),
    roots: register === undefined ? [] : rootsOf(register),
    evidence: report.evidence.map(({ seenAtMs, ...each }) => ({ ...each, seenAt: instant(seenAtMs) })),
  };
}

/** The status of this member for the operator, from memory and without requests to peers. */
export function presentMember(deps: ConsensusDeps): ReadonlyDeep<z.output<typeof validatorConsensusSchema>> {
  const { validatorId, publicKey, algorithm, endpoint } = deps.identity;
  const report = deps.report('');
  const address = walletAddress(algorithm, parsePublicKey(algorithm, publicKey));
  return {
    validatorId,
    did: memberDid(address),
    walletAddress: address,
    publicKey,
    algorithm,
    version: report.version,
    protocolVersion: PROTOCOL_VERSION,
    startedAt: instant(report.startedAtMs),
    endpoint,
    drain: presentDrain(deps.drain.facts),
    conditions: report.conditions.map(({ sinceMs, ...each }) => ({ ...each, since: instant(sinceMs) })),
    mempool: { bytes: deps.budget.bytes, maxBytes: deps.budget.maxBytes },
    heard: report.heard.map((each) => ({ validatorId: each.validatorId, heardAt: instant(each.heardAtMs) })),
    registers: report.registers
      .toSorted((left, right) => compareCodeUnits(left.registerId, right.registerId))
      .map((each) => presentRegister(deps, each)),
  };
}
