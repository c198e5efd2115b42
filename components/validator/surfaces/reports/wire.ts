import type {
  ConsensusTally,
  GetStatusResponse,
  RegisterValidation,
  VolumeGap as WireGap,
  EvidenceSummary as WireSummary,
} from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { Counts } from '../../chain/consensus/tally.ts';
import type { VolumeGap } from '../../chain/registers/volume-gaps.ts';
import type { EvidenceSummary } from './conditions.ts';
import { rejectionsOf, wireRejections } from './rejections.ts';
import type { RegisterReport, ValidatorReport } from './report.ts';
import { poolOf, wirePool, wireWork, workOf } from './work-wire.ts';

/** A report as a protobuf message. */
export function wireReport(report: ValidatorReport) {
  return {
    validatorId: report.validatorId,
    version: report.version,
    features: [...report.features],
    startedAtMs: BigInt(report.startedAtMs),
    registers: report.registers.map(wireRegister),
    heard: report.heard.map(({ validatorId, heardAtMs }) => ({ validatorId, heardAtMs: BigInt(heardAtMs) })),
    conditions: report.conditions.map((condition) => ({ ...condition, sinceMs: BigInt(condition.sinceMs) })),
  };
}

function wireRegister({ volumeGap: gap, ...report }: RegisterReport) {
  return {
    ...report,
    startedAtMs: BigInt(report.startedAtMs),
    storedHeight: BigInt(report.storedHeight),
    docketsBuilt: BigInt(report.docketsBuilt),
    transactionsProcessed: BigInt(report.transactionsProcessed),
    height: BigInt(report.height),
    members: [...report.members],
    decidedAtMs: BigInt(report.decidedAtMs),
    tally: wireCounts(report.counts),
    ...(gap && {
      volumeGap: { held: BigInt(gap.held), chain: BigInt(gap.chain), atMs: BigInt(gap.atMs) },
    }),
    rejections: wireRejections(report.rejections),
    evidence: report.evidence.map(wireSummary),
    work: wireWork(report.work),
    pool: wirePool(report.pool),
  };
}

const kinds = ['duplicate-proposal', 'duplicate-vote', 'conflicting-certificate'] as const;

function wireSummary({ kind, validatorIds, height, seenAtMs }: EvidenceSummary) {
  return { kind, validatorIds: [...validatorIds], height: BigInt(height), seenAtMs: BigInt(seenAtMs) };
}

/** Drops a summary of an unknown kind. */
function summaryOf(wire: WireSummary): EvidenceSummary[] {
  const kind = kinds.find((each) => each === wire.kind);
  const { validatorIds, height, seenAtMs } = wire;
  return kind === undefined
    ? []
    : [{ kind, validatorIds, height: Number(height), seenAtMs: Number(seenAtMs) }];
}

function wireCounts(counts: Readonly<Counts>) {
  return {
    rounds: BigInt(counts.rounds),
    roundsFailed: BigInt(counts.roundsFailed),
    proposalsMade: BigInt(counts.proposalsMade),
    proposalsReceived: BigInt(counts.proposalsReceived),
    votesCast: BigInt(counts.votesCast),
    votesNil: BigInt(counts.votesNil),
    evidenceCount: BigInt(counts.evidenceCount),
    decided: BigInt(counts.decided),
    decidingMs: BigInt(Math.round(counts.decidingMs)),
  };
}

/** Parses another validator's report. Numbers beyond 2^53 lose precision, which is harmless in a status report. */
export function reportOf(wire: GetStatusResponse): ValidatorReport {
  return {
    validatorId: wire.validatorId,
    version: wire.version,
    features: wire.features,
    startedAtMs: Number(wire.startedAtMs),
    registers: wire.registers.map(registerOf),
    heard: wire.heard.map(({ validatorId, heardAtMs }) => ({ validatorId, heardAtMs: Number(heardAtMs) })),
    conditions: wire.conditions.map(({ type, reason, message, sinceMs }) => ({
      type,
      reason,
      message,
      sinceMs: Number(sinceMs),
    })),
  };
}

function registerOf(wire: RegisterValidation): RegisterReport {
  return {
    registerId: wire.registerId,
    status: wire.status,
    reason: wire.reason,
    startedAtMs: Number(wire.startedAtMs),
    storedHeight: Number(wire.storedHeight),
    memPoolSize: wire.memPoolSize,
    docketsBuilt: Number(wire.docketsBuilt),
    transactionsProcessed: Number(wire.transactionsProcessed),
    height: Number(wire.height),
    round: wire.round,
    step: wire.step,
    proposer: wire.proposer,
    quorum: wire.quorum,
    members: wire.members,
    decidedAtMs: Number(wire.decidedAtMs),
    counts: countsOf(wire.tally),
    volumeGap: gapOf(wire.volumeGap),
    rejections: rejectionsOf(wire.rejections),
    evidence: wire.evidence.flatMap(summaryOf),
    work: workOf(wire.work),
    pool: poolOf(wire.pool),
  };
}

function gapOf(wire: WireGap | undefined): VolumeGap | undefined {
  if (wire === undefined) return undefined;
  return { held: Number(wire.held), chain: Number(wire.chain), atMs: Number(wire.atMs) };
}

function countsOf(wire: ConsensusTally | undefined): Counts {
  return {
    rounds: Number(wire?.rounds ?? 0),
    roundsFailed: Number(wire?.roundsFailed ?? 0),
    proposalsMade: Number(wire?.proposalsMade ?? 0),
    proposalsReceived: Number(wire?.proposalsReceived ?? 0),
    votesCast: Number(wire?.votesCast ?? 0),
    votesNil: Number(wire?.votesNil ?? 0),
    evidenceCount: Number(wire?.evidenceCount ?? 0),
    decided: Number(wire?.decided ?? 0),
    decidingMs: Number(wire?.decidingMs ?? 0),
  };
}
