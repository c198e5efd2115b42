import { z } from 'zod';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { DocketHeader as WireHeader } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { BuildDocketResponse, ListWaitingResponse } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { malformedAnswer } from '../../network/peers/connections.ts';
import type { BuiltDocket } from './build.ts';
import type { WaitingPage } from './waiting.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);
const headerSchema = z.object({
  registerId: z.string().regex(/^[0-9a-f]{32}$/),
  docketNumber: count,
  previousHash: hash,
  timestamp: z.string().max(64),
  validatorAddress: z.string().max(128),
  transactionIds: z.array(hash).max(10_000),
  hash,
  merkleRoot: hash,
  logRoot: hash,
  validatorSetHash: hash,
  isGenesis: z.boolean(),
  genesisConfig: z.string().max(65_536).optional(),
  sizeBytes: count,
});
const builtSchema = z.object({
  header: headerSchema.optional(),
  processed: count,
  rejected: count,
  buildMicros: count,
  sealed: z.boolean(),
});
/** The latest instant that a Date can represent; genesis never expires. */
const latestMs = 8.64e15;

/** A built docket as a protobuf message. */
export function wireBuilt({ header, processed, rejected, buildMicros, sealed }: BuiltDocket) {
  return {
    ...(header && { header: wireHeader(header) }),
    processed,
    rejected,
    buildMicros: BigInt(buildMicros),
    sealed,
  };
}

function wireHeader(header: DocketHeader) {
  return {
    ...header,
    transactionIds: [...header.transactionIds],
    docketNumber: BigInt(header.docketNumber),
    sizeBytes: BigInt(header.sizeBytes),
    genesisConfig: header.genesisConfig ?? '',
  };
}

/** Parses the docket that another validator built. @throws AppError bad_gateway BAD_GATEWAY for a malformed one */
export function builtOf(wire: BuildDocketResponse): BuiltDocket {
  const { processed, rejected, sealed } = wire;
  const buildMicros = Number(wire.buildMicros);
  const header = wire.header && headerOf(wire.header);
  const parsed = builtSchema.safeParse({ header, processed, rejected, buildMicros, sealed });
  if (!parsed.success) throw malformedAnswer(parsed.error);
  return { ...parsed.data, header: parsed.data.header as DocketHeader | undefined };
}

function headerOf({ $typeName: _, genesisConfig, ...header }: WireHeader) {
  return {
    ...header,
    docketNumber: Number(header.docketNumber),
    sizeBytes: Number(header.sizeBytes),
    ...(genesisConfig !== '' && { genesisConfig }),
  };
}

/** Parses another validator's waiting transactions. @throws AppError bad_gateway BAD_GATEWAY for malformed ones */
export function waitingOf({ transactions, total }: ListWaitingResponse): WaitingPage {
  return {
    total,
    transactions: transactions.map(({ record, addedAtMs, expiresAtMs }) => {
      try {
        parseRecord(record);
      } catch (cause) {
        throw malformedAnswer(cause);
      }
      return { record, addedAtMs: instantOf(addedAtMs), expiresAtMs: Number(expiresAtMs) };
    }),
  };
}

function instantOf(ms: bigint): number {
  if (ms >= 0n && ms <= BigInt(latestMs)) return Number(ms);
  throw malformedAnswer(undefined);
}
