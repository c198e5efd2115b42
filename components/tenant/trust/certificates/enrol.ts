import { randomUUIDv7 } from 'node:crypto';
import { encodeHex } from '#core/encoding/hex.ts';
import { organisationDid } from '#core/ledger/did.ts';
import { type Certificate, findCertificate } from '#core/trust/certificate.ts';
import { validatePath } from '#core/trust/path.ts';
import { appendAudit } from '../../audit/log/store.ts';
import { refusal } from '../../errors.ts';
import {
  type AuthorityDeps,
  provisionRoot,
  skewMs,
  type TrustChange,
  wholeSecond,
} from '../authority/provision.ts';
import { lockRoot, type StoredRoot } from '../authority/store.ts';
import { makeLeaf } from '../issuing/make.ts';
import { organizationNameOf } from '../issuing/names.ts';
import { type KeyOwner, type OrganizationKey, signWith } from '../keys/organization-keys.ts';
import { assertUncompromised, getCertifiableKey } from './judge.ts';
import { insertActive, type StoredCertificate } from './store.ts';

export interface EnrolDeps extends AuthorityDeps {
  /** Public address of the gateway, without a slash at the end. */
  readonly baseUrl: string;
}

const leafMs = 397 * 86_400_000;

/** The address of the revocation list of an organisation. */
function crlUrlOf(baseUrl: string, organizationId: string): string {
  return `${baseUrl}/api/v1/trust/tenants/${organizationId}/crl`;
}

/**
 * Issues the certificate of the organisation's key under its own authority, which is made when it is missing. An earlier
 * one is superseded and not revoked: credentials that name it stay valid.
 * @throws WALLET_NOT_FOUND, WALLET_LOCKED, CERT_KEY_NOT_ELIGIBLE, WALLETS_UNAVAILABLE, ORGANIZATION_NOT_FOUND
 */
export async function enrol(
  deps: EnrolDeps,
  walletAddress: string,
  change: TrustChange,
): Promise<StoredCertificate> {
  const owner = { organizationId: change.organization.id, walletAddress };
  const key = await getCertifiableKey(deps, owner);
  const root = await provisionRoot(deps, walletAddress, change);
  const certificate = await issue(deps, { owner, key, root, change });
  return deps.db.transact(async (tx) => {
    const locked = await lockRoot(tx, owner.organizationId);
    if (locked?.id !== root.id)
      throw refusal('WALLETS_UNAVAILABLE', { message: 'The authority was replaced meanwhile; repeat.' });
    await assertUncompromised(tx, owner.organizationId, key);
    const superseded = await insertActive(tx, certificate);
    const { caller, origin } = change;
    await appendAudit(tx, {
      organizationId: owner.organizationId,
      occurredAtMs: certificate.createdAtMs,
      type: 'CertificateEnrolled',
      identityId: caller?.subject,
      platformUserId: caller?.platformUserId,
      origin,
      success: true,
      details: {
        resourceType: 'certificate',
        resourceId: certificate.id,
        serialNumber: certificate.serialNumber,
        walletAddress,
        ...(superseded !== undefined && { superseded }),
      },
    });
    return { ...certificate, status: 'Active', revokedAtMs: undefined };
  });
}

interface LeafPlan {
  readonly owner: KeyOwner;
  readonly key: OrganizationKey;
  readonly root: StoredRoot;
  readonly change: TrustChange;
}

async function issue(
  { clock, keys, baseUrl }: EnrolDeps,
  { owner, key, root, change: { organization } }: LeafPlan,
): Promise<Omit<StoredCertificate, 'status' | 'revokedAtMs'>> {
  const createdAtMs = clock.nowMs();
  const anchor = findCertificate(root.certificate);
  const rootKey = await keys.get(owner, 'root');
  if (anchor === undefined || rootKey.thumbprint !== root.keyThumbprint) throw refusal('ROW_UNREADABLE');
  const notBeforeMs = Math.max(wholeSecond(createdAtMs - skewMs), anchor.notBeforeMs);
  const notAfterMs = Math.min(notBeforeMs + leafMs - 1_000, anchor.notAfterMs);
  const leaf = await makeLeaf({
    name: organizationNameOf(organization.name, organization.name),
    spki: key.spki,
    sign: signWith(keys, owner, { key: rootKey, use: 'root' }),
    root: root.certificate,
    uri: organisationDid(owner.walletAddress),
    host: hostOf(baseUrl),
    crlUrl: crlUrlOf(baseUrl, organization.id),
    notBeforeMs,
    notAfterMs,
  });
  const made = findCertificate(leaf);
  if (made === undefined || !isValid(made, anchor, createdAtMs))
    throw refusal('ROW_UNREADABLE', { message: 'the certificate that was made is not valid under its root' });
  return {
    ...owner,
    id: randomUUIDv7(),
    provenance: 'Internal',
    chain: [leaf],
    anchor: root.certificate,
    rootId: root.id,
    serialNumber: encodeHex(made.serial),
    notBeforeMs,
    notAfterMs,
    usableUntilMs: notAfterMs,
    keySource: key.source,
    keyThumbprint: key.thumbprint,
    createdAtMs,
  };
}

function isValid(leaf: Certificate, anchor: Certificate, atMs: number): boolean {
  return validatePath({ path: [leaf], anchors: [anchor], atMs }).violations.length === 0;
}

/** The host of an address; an IPv6 address without its brackets. */
function hostOf(baseUrl: string): string {
  return new URL(baseUrl).hostname.replaceAll(/^\[|\]$/g, '');
}
