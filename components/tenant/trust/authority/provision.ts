import { randomUUIDv7 } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockOrganization } from '../../organizations/store.ts';
import type { Origin } from '../../requests/origin.ts';
import { makeRoot, type Validity } from '../issuing/make.ts';
import { nameOfSubject, organizationNameOf } from '../issuing/names.ts';
import {
  type KeyOwner,
  type OrganizationKey,
  type OrganizationKeys,
  signWith,
} from '../keys/organization-keys.ts';
import { findRoot, type NewRoot, replaceRoot, type StoredRoot } from './store.ts';

export interface AuthorityDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly keys: OrganizationKeys;
}

/** The organisation of a change, and the caller that makes it; undefined where the service itself does. */
export interface TrustChange {
  readonly organization: { readonly id: string; readonly name: string };
  readonly caller: Pick<Caller, 'subject' | 'platformUserId'> | undefined;
  readonly origin: Origin | undefined;
}

const rootYears = 10;
/** Clocks of verifiers may be behind. */
export const skewMs = 5 * 60_000;
/** A root is renewed this long before it ends; leaves end with their root at the latest. */
const renewBeforeMs = 30 * 86_400_000;

/**
 * The authority of an organisation, made or renewed where it is missing, about to expire, or of another wallet. A renewed
 * root keeps name and key, so that certificates and lists under the earlier one stay valid under it.
 * @throws WALLET_NOT_FOUND, WALLET_LOCKED, CERT_KEY_NOT_ELIGIBLE, WALLETS_UNAVAILABLE, ORGANIZATION_NOT_FOUND
 */
export async function provisionRoot(
  deps: AuthorityDeps,
  walletAddress: string,
  change: TrustChange,
): Promise<StoredRoot> {
  const { organization } = change;
  const owner = { organizationId: organization.id, walletAddress };
  const key = await deps.keys.get(owner, 'root');
  const present = await findRoot(deps.db.read, organization.id);
  if (isUsable(present, key, deps.clock.nowMs())) return present;
  const root = await buildRoot(deps, { owner, key, present, change });
  return deps.db.transact(async (tx) => {
    const locked = await lockOrganization(tx, organization.id);
    if (locked === undefined || locked.deletedAtMs !== undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    const found = await findRoot(tx, organization.id);
    if (isUsable(found, key, deps.clock.nowMs())) return found;
    const stored = await replaceRoot(tx, root);
    const { caller, origin } = change;
    await appendAudit(tx, {
      organizationId: organization.id,
      occurredAtMs: root.createdAtMs,
      type: 'TrustAnchorCreated',
      identityId: caller?.subject,
      platformUserId: caller?.platformUserId,
      origin,
      success: true,
      details: { resourceType: 'wallet', resourceId: walletAddress, keyThumbprint: key.thumbprint },
    });
    return stored;
  });
}

function isUsable(root: StoredRoot | undefined, key: OrganizationKey, nowMs: number): root is StoredRoot {
  return root?.keyThumbprint === key.thumbprint && root.notAfterMs - nowMs > renewBeforeMs;
}

interface RootPlan {
  readonly owner: KeyOwner;
  readonly key: OrganizationKey;
  readonly present: StoredRoot | undefined;
  readonly change: TrustChange;
}

async function buildRoot(
  { keys, clock }: AuthorityDeps,
  { owner, key, present, change: { organization } }: RootPlan,
): Promise<NewRoot> {
  const createdAtMs = clock.nowMs();
  const validity = rootValidity(createdAtMs);
  const isRenewal = present?.keyThumbprint === key.thumbprint;
  const name = isRenewal
    ? nameOfSubject(present.certificate)
    : organizationNameOf(`Credential root of ${organization.name}`, organization.name);
  const sign = signWith(keys, owner, { key, use: 'root' });
  return {
    ...owner,
    id: randomUUIDv7(),
    certificate: await makeRoot({ name, spki: key.spki, sign, ...validity }),
    keyThumbprint: key.thumbprint,
    notAfterMs: validity.notAfterMs,
    createdAtMs,
  };
}

function rootValidity(nowMs: number): Validity {
  const notBeforeMs = wholeSecond(nowMs - skewMs);
  const end = new Date(notBeforeMs);
  end.setUTCFullYear(end.getUTCFullYear() + rootYears);
  return { notBeforeMs, notAfterMs: end.getTime() - 1_000 };
}

/** Times of certificates have no fractions of seconds. */
export function wholeSecond(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
}
