import { randomUUIDv7 } from 'node:crypto';
import { encodeHex } from '#core/encoding/hex.ts';
import { parsePemCertificates } from '#core/encoding/pem.ts';
import { equalBytes } from '#core/encoding/text.ts';
import type { AppError } from '#core/errors/errors.ts';
import { judge } from '#core/errors/judgement.ts';
import { type Certificate, findCertificate, isSelfSigned } from '#core/trust/certificate.ts';
import { allowsKeyUsage, basicConstraintsOf, KEY_USAGE, namesPurpose } from '#core/trust/extensions.ts';
import { judgeUnanchoredPath } from '#core/trust/unanchored.ts';
import { appendAudit } from '../../audit/log/store.ts';
import { refusal } from '../../errors.ts';
import { lockOrganization } from '../../organizations/store.ts';
import type { TrustChange } from '../authority/provision.ts';
import type { OrganizationKey } from '../keys/organization-keys.ts';
import { findCertificate as findShown } from '../lists/values/certificates.ts';
import { buildPath } from '../paths/build-path.ts';
import { assertUncompromised, getCertifiableKey, type JudgeDeps } from './judge.ts';
import { insertActive, type StoredCertificate } from './store.ts';

interface Upload {
  /** PEM of one certificate. */
  readonly certificatePem: string;
  /** PEM of the CAs above it, in any order; the root may be among them. */
  readonly chainPem: readonly string[];
}

/**
 * Stores a certificate that another CA issued for the organisation's key, in place of the earlier imported one.
 * @throws CERT_KEY_MISMATCH, CERT_CHAIN_INVALID, CERT_EXPIRED, CERT_UNSUITABLE, CERT_KEY_NOT_ELIGIBLE, WALLET_NOT_FOUND,
 * WALLET_LOCKED, WALLETS_UNAVAILABLE, ORGANIZATION_NOT_FOUND
 */
export async function importCertificate(
  deps: JudgeDeps,
  { walletAddress, ...upload }: Upload & { readonly walletAddress: string },
  { organization, caller, origin }: TrustChange,
): Promise<StoredCertificate> {
  const organizationId = organization.id;
  const createdAtMs = deps.clock.nowMs();
  const key = await getCertifiableKey(deps, { organizationId, walletAddress });
  const path = judgeUpload(upload, key, createdAtMs);
  const certificate = { ...rowOf(path, key), id: randomUUIDv7(), organizationId, walletAddress, createdAtMs };
  return deps.db.transact(async (tx) => {
    const locked = await lockOrganization(tx, organizationId);
    if (locked === undefined || locked.deletedAtMs !== undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    await assertUncompromised(tx, organizationId, key);
    const superseded = await insertActive(tx, certificate);
    await appendAudit(tx, {
      organizationId,
      occurredAtMs: createdAtMs,
      type: 'CertificateImported',
      identityId: caller?.subject,
      platformUserId: caller?.platformUserId,
      origin,
      success: true,
      details: {
        resourceType: 'certificate',
        resourceId: certificate.id,
        serialNumber: certificate.serialNumber,
        thumbprint: path[0].thumbprint,
        walletAddress,
        ...(superseded !== undefined && { superseded }),
      },
    });
    return { ...certificate, status: 'Active', revokedAtMs: undefined };
  });
}

type Path = readonly [Certificate, ...Certificate[]];

/** The path of an upload, the leaf first. */
function judgeUpload({ certificatePem, chainPem }: Upload, key: OrganizationKey, nowMs: number): Path {
  const [leaf, ...others] = parseAll(certificatePem, 'certificatePem');
  if (others.length > 0)
    throw broken('certificatePem holds several certificates; send those of the CAs as chainPem');
  if (!equalBytes(leaf.spki, key.spki)) throw refusal('CERT_KEY_MISMATCH');
  if (isSelfSigned(leaf))
    throw broken('the certificate is signed by its own key; send one that a CA has issued');
  const given = chainPem.flatMap((pem, index) => parseAll(pem, `chainPem[${index}]`));
  const built = buildPath(leaf, given);
  if (!('path' in built)) throw broken(`${built.message}; send the leaf and the CAs above it`);
  judgePath(built.path, nowMs);
  judgeLeaf(leaf);
  return [leaf, ...built.path.slice(1)];
}

function parseAll(pem: string, member: string): Path {
  const certificates = parsePemCertificates(pem)?.map(findReadable) ?? [];
  const [first, ...rest] = certificates.flatMap((certificate) => certificate ?? []);
  if (first === undefined || rest.length + 1 !== certificates.length)
    throw broken(`${member} holds no PEM of X.509 certificates`);
  return [first, ...rest];
}

/** Names that are no text, which are left alone here, cannot be shown later: Node.js refuses to read them. */
function findReadable(der: Uint8Array): Certificate | undefined {
  return findShown(der) && findCertificate(der);
}

function judgePath(path: readonly Certificate[], nowMs: number): void {
  const violations = judgeUnanchoredPath(path, nowMs);
  const found = violations.find(({ code }) => code === 'TRUST_CHAIN_INVALID') ?? violations[0];
  if (found === undefined) return;
  const place = found.index === 0 ? 'the certificate' : `certificate ${found.index} above it`;
  if (found.code === 'TRUST_CHAIN_INVALID') throw broken(`${place} ${found.message}`);
  throw refusal('CERT_EXPIRED', {
    message: `Refused, because ${place} ${found.message}: request a new one.`,
  });
}

/** Purposes that let a certificate sign credentials: documents (RFC 9336), mdocs (ISO 18013-5), mails and seals. */
const PURPOSES: readonly string[] = [
  '1.3.6.1.5.5.7.3.36',
  '1.3.6.1.4.1.311.10.3.12',
  '1.0.18013.5.1.2',
  '1.3.6.1.5.5.7.3.4',
];

/** @throws CERT_UNSUITABLE, CERT_CHAIN_INVALID for an extension that is malformed */
function judgeLeaf(leaf: Certificate): void {
  const { violations, result } = judge(() => ({
    isAuthority: basicConstraintsOf(leaf).isAuthority,
    maySign: allowsKeyUsage(leaf, KEY_USAGE.digitalSignature),
    isForOthers: PURPOSES.every((purpose) => namesPurpose(leaf, purpose) === false),
  }));
  if (result === undefined) throw broken(`the certificate is malformed (${violations[0].message})`);
  if (result.isAuthority) throw unsuitable('it is the certificate of a CA; request one for an end entity');
  if (!result.maySign) throw unsuitable('its key usage lacks digitalSignature; request one that has it');
  if (result.isForOthers)
    throw unsuitable('its extended key usage names other purposes; request one without it, or for documents');
}

function rowOf(
  path: Path,
  key: OrganizationKey,
): Omit<
  StoredCertificate,
  'id' | 'organizationId' | 'walletAddress' | 'createdAtMs' | 'status' | 'revokedAtMs'
> {
  const [leaf] = path;
  const anchor = path.find(isSelfSigned);
  return {
    provenance: 'Imported',
    chain: path.filter((certificate) => certificate !== anchor).map(({ der }) => Buffer.from(der)),
    anchor: anchor && Buffer.from(anchor.der),
    rootId: undefined,
    serialNumber: encodeHex(leaf.serial),
    notBeforeMs: leaf.notBeforeMs,
    notAfterMs: leaf.notAfterMs,
    usableUntilMs: Math.min(...path.map(({ notAfterMs }) => notAfterMs)),
    keySource: key.source,
    keyThumbprint: key.thumbprint,
  };
}

const broken = (reason: string): AppError =>
  refusal('CERT_CHAIN_INVALID', { message: `The certificates form no valid chain: ${reason}.` });

const unsuitable = (reason: string): AppError =>
  refusal('CERT_UNSUITABLE', { message: `The certificate may not sign credentials: ${reason}.` });
