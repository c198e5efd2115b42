import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { ValidatorReport } from './report.ts';

/** The latest instant that a Date can represent. */
const instant = z.number().min(0).max(8.64e15);
const count = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
const name = z.string().max(128);
const word = z.string().max(64);
const sentence = z.string().max(1_024);
const mostRegisters = 10_000;
const mostMembers = 128;
const mostHeard = 1_024;
const mostConditions = 64;
const mostRejections = 64;
const mostEvidence = 1_024;
const mostCodes = 256;
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
  members: z.array(name).max(mostMembers),
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
    .max(mostRejections),
  evidence: z
    .array(
      z.looseObject({
        validatorIds: z.array(name).max(mostMembers),
        height: count,
        seenAtMs: instant,
      }),
    )
    .max(mostEvidence),
  work: z.looseObject({
    total: workCounts,
    lastDay: workCounts,
    errorsByCode: z
      .record(word, count)
      .refine((codes) => Object.keys(codes).length <= mostCodes, 'too many codes'),
  }),
  pool: z.looseObject({
    control: count,
    action: count,
    bytes: count,
    maxSize: count,
    oldestAtMs: instant,
  }),
});

const reportSchema = z.looseObject({
  validatorId: name,
  version: word,
  startedAtMs: instant,
  registers: z.array(registerSchema).max(mostRegisters),
  heard: z.array(z.looseObject({ validatorId: name, heardAtMs: instant })).max(mostHeard),
  conditions: z
    .array(z.looseObject({ type: name, reason: name, message: sentence, sinceMs: instant }))
    .max(mostConditions),
});

/**
 * Checks the bounds of a report from another validator, since it is shown to people and added to other reports.
 * @throws AppError bad_gateway INVALID_REPORT
 */
export function assertReport(report: ValidatorReport): ValidatorReport {
  const { success, error: cause } = reportSchema.safeParse(report);
  if (success) return report;
  throw new AppError(
    'bad_gateway',
    'INVALID_REPORT',
    'The report of another validator has fields out of bounds',
    { cause },
  );
}
