import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import type { RejectedProposal } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { Rejection } from '../sealing/rejections.ts';
import type { RegisterReport } from './report.ts';

/** Of one register, in a report and in an answer. */
const mostShown = 32;

/** The latest of them, as they travel in a report. */
export function wireRejections(rejections: readonly Rejection[]) {
  return rejections.slice(-mostShown).map(({ docketNumber, vote }) => ({
    docketNumber: BigInt(docketNumber),
    vote: { ...vote, signature: decodeHex(vote.signature), reason: vote.reason ?? '' },
  }));
}

/** What another validator says that members said; a vote that is none is left out. */
export function rejectionsOf(wire: readonly RejectedProposal[]): Rejection[] {
  return wire.slice(-mostShown).flatMap(({ docketNumber, vote }) => {
    if (vote === undefined || vote.approved || !isAlgorithm(vote.algorithm)) return [];
    const { $typeName: _type, ...said } = vote;
    const { algorithm } = vote;
    const plain = { ...said, algorithm, signature: encodeHex(vote.signature) };
    return { docketNumber: Number(docketNumber), vote: plain };
  });
}

/**
 * Rejected proposals as some validators know them, each said once, the newest docket first, with the vote in the
 * specification's own shape. A docket that was never sealed is no history of the register, so this is where they show.
 */
export function presentRejections(reports: readonly Pick<RegisterReport, 'rejections'>[]) {
  const known = new Map<string, Rejection>();
  for (const each of reports.flatMap(({ rejections }) => rejections)) {
    known.set(`${each.docketNumber}/${each.vote.docketHash}/${each.vote.validatorId}`, each);
  }
  return [...known.values()]
    .toSorted((one, other) => other.docketNumber - one.docketNumber)
    .slice(0, mostShown)
    .map(({ docketNumber, vote }) => ({ docketNumber, ...vote }));
}
