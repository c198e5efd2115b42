import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import type { RejectedProposal } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { Rejection } from '../../chain/sealing/rejections.ts';
import type { RegisterReport } from './report.ts';

/** Bound of the rejections of one register, in a report and in an answer. */
const maxShown = 32;

/** The latest rejections as protobuf messages. */
export function wireRejections(rejections: readonly Rejection[]) {
  return rejections.slice(-maxShown).map(({ docketNumber, vote }) => ({
    docketNumber: BigInt(docketNumber),
    vote: { ...vote, signature: decodeHex(vote.signature), reason: vote.reason ?? '' },
  }));
}

/** Parses rejections from another validator's report. A malformed or approving vote is dropped. */
export function rejectionsOf(wire: readonly RejectedProposal[]): Rejection[] {
  return wire.slice(-maxShown).flatMap(({ docketNumber, vote }) => {
    if (vote === undefined || vote.approved || !isAlgorithm(vote.algorithm)) return [];
    const { $typeName: _type, ...fields } = vote;
    const { algorithm } = vote;
    const parsed = { ...fields, algorithm, signature: encodeHex(vote.signature) };
    return { docketNumber: Number(docketNumber), vote: parsed };
  });
}

/**
 * Merges the rejected proposals of several reports, without duplicates, newest docket first, each with its vote in the
 * specification's shape. Rejected dockets are not part of the register's history, so only this answer shows them.
 */
export function presentRejections(reports: readonly Pick<RegisterReport, 'rejections'>[]) {
  const known = new Map<string, Rejection>();
  for (const each of reports.flatMap(({ rejections }) => rejections)) {
    known.set(`${each.docketNumber}/${each.vote.docketHash}/${each.vote.validatorId}`, each);
  }
  return [...known.values()]
    .toSorted((one, other) => other.docketNumber - one.docketNumber)
    .slice(0, maxShown)
    .map(({ docketNumber, vote }) => ({ docketNumber, ...vote, approved: false as const }));
}
