import type { z } from 'zod';
import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { memberDid } from '#core/ledger/did.ts';
import { activeMembers, type LedgerRules, type LedgerValidator } from '#core/ledger/governance/rules.ts';
import type { ValidatorView } from '../../clients/validators.ts';
import type { operationalSchema } from './schemas.ts';

/** DID of a validator: that of the address of its key. */
export function didOf({ algorithm, publicKey }: Pick<LedgerValidator, 'algorithm' | 'publicKey'>): string {
  return memberDid(walletAddress(algorithm, parsePublicKey(algorithm, publicKey)));
}

/** A validator that was not heard for this many times its time to live is no longer listed. */
const listedTtls = 10;

/** When each validator was last heard, by itself or by another one; times in the future are not believed. */
function lastHeard(views: readonly ValidatorView[], nowMs: number): Map<string, number> {
  const heard = new Map<string, number>();
  const note = (validatorId: string, atMs: number) =>
    heard.set(validatorId, Math.max(Math.min(atMs, nowMs), heard.get(validatorId) ?? 0));
  for (const view of views) {
    note(view.validatorId, nowMs);
    for (const { validatorId, heardAtMs } of view.heard) note(validatorId, heardAtMs);
  }
  return heard;
}

/**
 * Which members of the set are alive, according to the heartbeats known to the validators that answer. Informational
 * only.
 */
export function presentOperational(
  rules: LedgerRules,
  views: readonly ValidatorView[],
  nowMs: number,
): z.output<typeof operationalSchema> {
  const ttlMs = rules.policy.validators.operationalTtlSeconds * 1000;
  const heard = lastHeard(views, nowMs);
  const [ahead] = views.toSorted((left, right) => right.height - left.height || right.round - left.round);
  const validators = activeMembers(rules).flatMap((member) => {
    const heardAtMs = heard.get(member.validatorId);
    if (heardAtMs === undefined || nowMs - heardAtMs >= listedTtls * ttlMs) return [];
    const leftMs = Math.max(0, heardAtMs + ttlMs - nowMs);
    const own = views.find((view) => view.validatorId === member.validatorId);
    return [
      {
        validatorId: member.validatorId,
        did: didOf(member),
        status: leftMs > 0 ? ('active' as const) : ('inactive' as const),
        ttlRemainingSeconds: Math.ceil(leftMs / 1000),
        lastHeartbeat: apiTimestamp(heardAtMs),
        isProposer: ahead?.proposer === member.validatorId,
        ...(own !== undefined && { height: own.height, round: own.round, version: own.version }),
      },
    ];
  });
  return { registerId: rules.registerId, validators, count: validators.length };
}
