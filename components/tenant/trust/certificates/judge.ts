import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { KeyOwner, KeySource, OrganizationKey, OrganizationKeys } from '../keys/organization-keys.ts';
import {
  endUse,
  findActive,
  findRetired,
  isCompromised,
  type Provenance,
  type StoredCertificate,
} from './store.ts';

export interface JudgeDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly keys: OrganizationKeys;
}

/** Whether the wallet of an organisation has a key for certificates. */
export interface Eligibility {
  readonly eligible: boolean;
  /** The code of the refusal; undefined when it is eligible. */
  readonly reason?: string | undefined;
  readonly boundKeySource?: KeySource | undefined;
  readonly key?: OrganizationKey | undefined;
}

/**
 * Judges the wallet of an organisation.
 * @throws WALLET_NOT_FOUND for the wallet of another one, WALLETS_UNAVAILABLE
 */
export async function judgeEligibility({ db, keys }: JudgeDeps, owner: KeyOwner): Promise<Eligibility> {
  try {
    const key = await keys.get(owner, 'issuer');
    const reason = (await isCompromised(db.read, owner.organizationId, key.thumbprint))
      ? 'CERT_KEY_NOT_ELIGIBLE'
      : undefined;
    return { eligible: reason === undefined, reason, boundKeySource: key.source, key };
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (error.code !== 'CERT_KEY_NOT_ELIGIBLE' && error.code !== 'WALLET_LOCKED') throw error;
    return { eligible: false, reason: error.code };
  }
}

/**
 * The key that new certificates of an organisation name.
 * @throws WALLET_NOT_FOUND, WALLET_LOCKED, CERT_KEY_NOT_ELIGIBLE, also for a key that was revoked as compromised,
 * WALLETS_UNAVAILABLE
 */
export async function getCertifiableKey({ db, keys }: JudgeDeps, owner: KeyOwner): Promise<OrganizationKey> {
  const key = await keys.get(owner, 'issuer');
  await assertUncompromised(db.read, owner.organizationId, key);
  return key;
}

/** @throws CERT_KEY_NOT_ELIGIBLE for a key that was revoked as compromised */
export async function assertUncompromised(
  db: Reader<TenantDatabase>,
  organizationId: string,
  { thumbprint }: OrganizationKey,
): Promise<void> {
  if (await isCompromised(db, organizationId, thumbprint))
    throw refusal('CERT_KEY_NOT_ELIGIBLE', {
      message: 'The key was revoked as compromised: replace the wallet of the organisation.',
    });
}

/**
 * A certificate in its status at present: one in use ends when its chain has expired, or when the organisation has
 * another key. The status is stored.
 * @param key the present key of the organisation; undefined while it cannot be used, which ends nothing
 */
export async function judgeCertificate(
  { db, clock }: JudgeDeps,
  certificate: StoredCertificate,
  key: OrganizationKey | undefined,
): Promise<StoredCertificate> {
  if (certificate.status !== 'Active') return certificate;
  const isExpired = clock.nowMs() >= certificate.usableUntilMs + 1_000;
  const isMismatched = key !== undefined && key.thumbprint !== certificate.keyThumbprint;
  if (!isExpired && !isMismatched) return certificate;
  const status = isMismatched ? 'KeyMismatch' : 'Expired';
  await db.transact((tx) => endUse(tx, certificate.id, status));
  return { ...certificate, status };
}

/** Which certificate of an organisation is looked for. */
export interface CertificateWish {
  readonly provenance: Provenance;
  /** Where none is in use, one that was retired will do while it is valid. */
  readonly mayBeRetired: boolean;
}

/**
 * The certificate of a provenance that is in use at this moment: its key is the present one of the named wallet.
 * Undefined when there is none.
 * @throws WALLET_NOT_FOUND, WALLET_LOCKED, CERT_KEY_NOT_ELIGIBLE, also for new signatures of a key that was revoked as
 * compromised, WALLETS_UNAVAILABLE
 */
export async function findUsable(
  deps: JudgeDeps,
  owner: KeyOwner,
  { provenance, mayBeRetired }: CertificateWish,
): Promise<StoredCertificate | undefined> {
  const { db, clock, keys } = deps;
  const active = await findActive(db.read, owner.organizationId, provenance);
  if (active === undefined && !mayBeRetired) return undefined;
  const key = await keys.get(owner, 'issuer');
  // An outside authority may not know of it yet. Status lists are still signed, because they tell what is revoked.
  if (provenance === 'Imported' && !mayBeRetired)
    await assertUncompromised(db.read, owner.organizationId, key);
  const judged = active && (await judgeCertificate(deps, active, key));
  if (judged?.status === 'Active') return judged;
  if (!mayBeRetired) return undefined;
  return findRetired(db.read, owner, { provenance, keyThumbprint: key.thumbprint, atMs: clock.nowMs() });
}
