import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { TrustChange } from '../authority/provision.ts';
import { lockRoot, raiseRevision } from '../authority/store.ts';
import { listRevokedOf, retireImported, revokeInternal, type StoredCertificate } from './store.ts';

interface EndDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}

const most = 100;

/**
 * Revokes the internal certificates of a wallet, superseded ones too, because they are for the same key. It needs no
 * wallet service; the next reader of the revocation list has it signed. Returns the newest revoked certificates, also when
 * they were revoked before.
 * @throws CERT_NOT_ENROLLED when the wallet never had one that could be revoked
 */
export function revokeCertificates(
  { db, clock }: EndDeps,
  { walletAddress, reason }: { readonly walletAddress: string; readonly reason: string },
  change: TrustChange,
): Promise<StoredCertificate[]> {
  const place = { organizationId: change.organization.id, walletAddress };
  return db.transact(async (tx) => {
    // Enrolment locks the same row: no certificate is issued beside the revocation.
    await lockRoot(tx, place.organizationId);
    const atMs = clock.nowMs();
    const revoked = await revokeInternal(tx, place, { atMs, reason });
    if (revoked.length > 0) {
      await raiseRevision(tx, place.organizationId);
      const serialNumbers = revoked.slice(0, most).map(({ serialNumber }) => serialNumber);
      await audit(tx, change, {
        atMs,
        type: 'CertificateRevoked',
        details: { walletAddress, reason, serialNumbers },
      });
    }
    const all = await listRevokedOf(tx, place, most);
    if (all.length === 0) throw refusal('CERT_NOT_ENROLLED');
    return all;
  });
}

/**
 * Ends the use of an imported certificate; repeated calls change nothing. Its issuer alone can revoke it.
 * @throws CERTIFICATE_NOT_FOUND, also for an internal one
 */
export function retireCertificate(
  { db, clock }: EndDeps,
  { walletAddress, id }: { readonly walletAddress: string; readonly id: string },
  change: TrustChange,
): Promise<void> {
  const place = { organizationId: change.organization.id, walletAddress };
  return db.transact(async (tx) => {
    const retired = await retireImported(tx, place, id);
    if (retired === undefined) throw refusal('CERTIFICATE_NOT_FOUND');
    if (!retired.changed) return;
    const details = { resourceType: 'certificate', resourceId: id, walletAddress };
    await audit(tx, change, { atMs: clock.nowMs(), type: 'CertificateRetired', details });
  });
}

async function audit(
  tx: Transactor<TenantDatabase>,
  { organization, caller, origin }: TrustChange,
  event: {
    readonly atMs: number;
    readonly type: 'CertificateRevoked' | 'CertificateRetired';
    readonly details: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  await appendAudit(tx, {
    organizationId: organization.id,
    occurredAtMs: event.atMs,
    type: event.type,
    identityId: caller?.subject,
    platformUserId: caller?.platformUserId,
    origin,
    success: true,
    details: event.details,
  });
}
