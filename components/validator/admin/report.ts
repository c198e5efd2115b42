import { proposerOf } from '../consensus/members.ts';
import type { Counts } from '../consensus/tally.ts';
import type { EvidenceSummary } from '../evidence/conditions.ts';
import type { Condition } from '../health.ts';
import { diskFullReason } from '../log/volume.ts';
import type { WorkReport } from '../measuring/work.ts';
import type { VolumeGap } from '../membership/gaps.ts';
import type { Pool } from '../pool/pool.ts';
import type { Register } from '../sealing/register.ts';
import type { Rejection } from '../sealing/rejections.ts';
import type { RegisterStatus } from '../sealing/status.ts';

/** One register as one validator sees it. */
export interface RegisterReport {
  readonly registerId: string;
  /** Running, Paused, Stopped, Halted, WaitingForValidators */
  readonly status: string;
  /** Why it is halted, or paused by itself; empty otherwise. */
  readonly reason: string;
  readonly startedAtMs: number;
  /** Number of stored dockets. */
  readonly storedHeight: number;
  readonly memPoolSize: number;
  readonly docketsBuilt: number;
  readonly transactionsProcessed: number;
  /** Number of the docket that is being decided. */
  readonly height: number;
  readonly round: number;
  readonly step: string;
  readonly proposer: string;
  readonly quorum: number;
  /** V(height), by id */
  readonly members: readonly string[];
  /** 0 when nothing was decided since the start. */
  readonly decidedAtMs: number;
  readonly counts: Readonly<Counts>;
  /** What the volume lacked when the process started; undefined when nothing. */
  readonly volumeGap: VolumeGap | undefined;
  /** Proposals that members judged invalid, the oldest first. */
  readonly rejections: readonly Rejection[];
  /** Proven faults that the validator holds. */
  readonly evidence: readonly EvidenceSummary[];
  readonly work: WorkReport;
  readonly pool: PoolReport;
}

/** What waits in one register. */
export interface PoolReport {
  readonly control: number;
  readonly action: number;
  readonly bytes: number;
  readonly maxSize: number;
  /** 0 when nothing waits. */
  readonly oldestAtMs: number;
}

/** What was last heard of another validator. */
export interface Heard {
  readonly validatorId: string;
  readonly heardAtMs: number;
}

/** Everything one validator says of itself. */
export interface ValidatorReport {
  readonly validatorId: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly registers: readonly RegisterReport[];
  readonly heard: readonly Heard[];
  readonly conditions: readonly Condition[];
}

/** @param evidence what this validator holds about members of the register */
export function reportRegister(
  register: Register,
  volumeGap: VolumeGap | undefined,
  evidence: readonly EvidenceSummary[] = [],
): RegisterReport {
  const { facts, state } = register;
  const members = state.members.map((member) => member.validatorId);
  return {
    registerId: register.id,
    status: facts.isWaitingForValidators ? 'WaitingForValidators' : shown(register.status),
    reason: facts.haltedBecause ?? (register.status === 'Full' ? diskFullReason : ''),
    startedAtMs: facts.startedAtMs,
    storedHeight: facts.storedHeight,
    memPoolSize: register.pool.size,
    docketsBuilt: facts.docketsBuilt,
    transactionsProcessed: facts.transactionsProcessed,
    height: facts.height,
    round: facts.round,
    step: facts.step,
    proposer: proposerOf(members, facts.height, facts.round),
    quorum: facts.quorum,
    members,
    decidedAtMs: facts.decidedAtMs,
    counts: register.tally.counts,
    rejections: register.rejections.all,
    volumeGap,
    evidence,
    work: register.work.report,
    pool: reportPool(register.pool),
  };
}

function reportPool(pool: Pool): PoolReport {
  const { size, controlSize: control, bytes, maxSize, oldestAtMs = 0 } = pool;
  return { control, action: size - control, bytes, maxSize, oldestAtMs };
}

function shown(status: RegisterStatus): string {
  return status === 'Full' ? 'Paused' : status;
}
