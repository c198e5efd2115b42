import { z } from 'zod';
import { failure } from '../../errors.ts';
import type { ValidatorReport } from './report.ts';

/** The latest instant that a Date can represent. */
const instant = z.number().min(0).max(8.64e15);
const count = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
const name = z.string().max(128);
const word = z.string().max(64);
const sentence = z.string().max(1_024);
const maxRegisters = 10_000;
const maxMembers = 128;
const maxHeard = 1_024;
const maxConditions = 64;
const maxRejections = 64;
const maxEvidence = 1_024;
const maxCodes = 256;
const workCounts = z.record(z.string(), count);

const registerSchema = z.looseObject({
  registerId: z.string().regex(/^[0-9a-f]{32}$/),
  status: word,
  reason: sentence,
  startedAtMs: instant,
  decidedAtMs: instant,
  storedHeight: count,
  height: count,
  docketsBuilt: count,
  transactionsProcessed: count,
  step: word,
  proposer: name,
  members: z.array(name).max(maxMembers),
  counts: z.record(z.string(), count),
  volumeGap: z.looseObject({ held: count, chain: count, atMs: instant }).optional(),
  rejections: z
    .array(
      z.looseObject({
        docketNumber: count,
        vote: z.looseObject({
          docketHash: name,
          validatorId: name,
          validatorAddress: name,
          timestamp: word,
          publicKey: sentence,
          signature: sentence,
          reason: sentence.optional(),
        }),
      }),
    )
    .max(maxRejections),
  evidence: z
    .array(
      z.looseObject({
        validatorIds: z.array(name).max(maxMembers),
        height: count,
        seenAtMs: instant,
      }),
    )
    .max(maxEvidence),
  work: z.looseObject({
    total: workCounts,
    lastDay: workCounts,
    errorsByCode: z
      .record(word, count)
      .refine((codes) => Object.keys(codes).length <= maxCodes, 'too many codes'),
  }),
  pool: z.looseObject({
    control: count,
    action: count,
    bytes: count,
    maxSize: count,
    oldestAtMs: instant,
  }),
});

const maxFeatures = 16;

const reportSchema = z.looseObject({
  validatorId: name,
  version: word,
  features: z.array(word).max(maxFeatures),
  startedAtMs: instant,
  registers: z.array(registerSchema).max(maxRegisters),
  heard: z.array(z.looseObject({ validatorId: name, heardAtMs: instant })).max(maxHeard),
  conditions: z
    .array(z.looseObject({ type: name, reason: name, message: sentence, sinceMs: instant }))
    .max(maxConditions),
});

/**
 * Checks the bounds of a report from another validator, since it is shown to people and added to other reports.
 * @throws AppError bad_gateway INVALID_REPORT
 */
export function assertReport(report: ValidatorReport): ValidatorReport {
  const { success, error: cause } = reportSchema.safeParse(report);
  if (success) return report;
  throw failure('INVALID_REPORT', { cause });
}
