import { proposerOf } from '#core/ledger/consensus.ts';
import type { Counts } from '../../chain/consensus/tally.ts';
import type { Pool } from '../../chain/pool/pool.ts';
import type { VolumeGap } from '../../chain/registers/volume-gaps.ts';
import type { Condition } from '../../chain/sealing/health.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { Rejection } from '../../chain/sealing/rejections.ts';
import type { RegisterStatus } from '../../chain/sealing/status.ts';
import type { WorkReport } from '../../chain/sealing/work-counter.ts';
import { diskFullReason } from '../../disk/volume/volume.ts';
import type { EvidenceSummary } from './conditions.ts';

/** One register as one validator sees it. */
export interface RegisterReport {
  readonly registerId: string;
  /** Running, Paused, Stopped, Halted, WaitingForValidators */
  readonly status: string;
  /** Why the register is halted or paused by a full disk; empty otherwise. */
  readonly reason: string;
  readonly startedAtMs: number;
  /** Number of stored dockets. */
  readonly storedHeight: number;
  readonly memPoolSize: number;
  readonly docketsBuilt: number;
  readonly transactionsProcessed: number;
  /** Number of the docket that consensus currently decides. */
  readonly height: number;
  readonly round: number;
  readonly step: string;
  readonly proposer: string;
  readonly quorum: number;
  /** The validator set of the current height, by id. */
  readonly members: readonly string[];
  /** 0 when no docket was decided since the start. */
  readonly decidedAtMs: number;
  readonly counts: Readonly<Counts>;
  /** Dockets that the volume lacked when the process started; undefined when it lacked none. */
  readonly volumeGap: VolumeGap | undefined;
  /** Proposals that members judged invalid, oldest first. */
  readonly rejections: readonly Rejection[];
  /** Proven faults that this validator holds evidence of. */
  readonly evidence: readonly EvidenceSummary[];
  readonly work: WorkReport;
  readonly pool: PoolReport;
}

/** The waiting transactions of one register. */
export interface PoolReport {
  readonly control: number;
  readonly action: number;
  readonly bytes: number;
  readonly maxSize: number;
  /** 0 when the pool is empty. */
  readonly oldestAtMs: number;
}

/** The last time that another validator was heard. */
export interface LastContact {
  readonly validatorId: string;
  readonly heardAtMs: number;
}

/** The status of one validator and of its registers. */
export interface ValidatorReport {
  readonly validatorId: string;
  readonly version: string;
  /** What its rules cover. */
  readonly features: readonly string[];
  readonly startedAtMs: number;
  readonly registers: readonly RegisterReport[];
  readonly heard: readonly LastContact[];
  readonly conditions: readonly Condition[];
}

/** @param evidence evidence against members of the register that this validator holds */
export function reportRegister(
  register: RegisterChain,
  volumeGap: VolumeGap | undefined,
  evidence: readonly EvidenceSummary[] = [],
): RegisterReport {
  const { facts, state } = register;
  const members = state.members.map((member) => member.validatorId);
  return {
    registerId: register.id,
    status: facts.isWaitingForValidators ? 'WaitingForValidators' : presentedStatus(register.status),
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

function presentedStatus(status: RegisterStatus): string {
  return status === 'Full' ? 'Paused' : status;
}
