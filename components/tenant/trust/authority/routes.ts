import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, json, media } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { getOrganization } from '../../organizations/authority.ts';
import { originOf } from '../../requests/origin.ts';
import { administeredTenant } from '../requests/organization.ts';
import { tenantParams } from '../requests/params.ts';
import type { CrlPublisher } from './crl.ts';
import { type AuthorityDeps, provisionRoot } from './provision.ts';
import { findRoot, type StoredRoot } from './store.ts';

export interface AuthorityRouteDeps extends AuthorityDeps {
  readonly crls: CrlPublisher;
}

const base = '/api/v1/trust/tenants/:tenantId';
const tag = 'Organisation certificates';

const rootSchema = z
  .object({
    tenantId: z.string(),
    walletAddress: z.string().describe('The wallet whose key signs.'),
    subjectDn: z.string(),
    serialNumber: z.string().describe('Hexadecimal.'),
    thumbprint: z.string().describe('SHA-256 of the certificate, hexadecimal.'),
    notBefore: z.string(),
    notAfter: z.string(),
    createdAt: z.string(),
  })
  .meta({ id: 'TrustAnchor' });

function present(root: StoredRoot): z.output<typeof rootSchema> {
  const certificate = new X509Certificate(root.certificate);
  return {
    tenantId: root.organizationId,
    walletAddress: root.walletAddress,
    subjectDn: certificate.subject.split('\n').join(', '),
    serialNumber: certificate.serialNumber.toLowerCase(),
    thumbprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    notBefore: apiTimestamp(certificate.validFromDate.getTime()),
    notAfter: apiTimestamp(root.notAfterMs),
    createdAt: apiTimestamp(root.createdAtMs),
  };
}

/** The authorities of organisations: their certificates and revocation lists are public. */
export function mountAuthority(app: App, deps: AuthorityRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: `${base}/provision`,
    operationId: 'ensureTrustAnchor',
    tag,
    summary: 'Make the authority of an organisation',
    description:
      'It is made once; a repetition answers with the present one. Enrolment makes a missing one too.',
    policy: 'RequireAdministrator',
    rateLimit: 'Strict',
    params: tenantParams,
    resource: administeredTenant(() => deps.db.read),
    answers: { 200: json('The authority.', rootSchema) },
    refusals: refusals(
      'FOREIGN_ORGANIZATION',
      'ORGANIZATION_NOT_FOUND',
      'WALLET_NOT_FOUND',
      'WALLET_LOCKED',
      'CERT_KEY_NOT_ELIGIBLE',
      'WALLETS_UNAVAILABLE',
    ),
    handle: async ({ resource: organization, caller, request }) => {
      const walletAddress = await deps.keys.findWallet(organization.id);
      if (walletAddress === undefined) throw refusal('WALLET_NOT_FOUND');
      const change = { organization, caller, origin: originOf(request) };
      return present(await provisionRoot(deps, walletAddress, change));
    },
  });
  mountPublic(app, deps);
}

function mountPublic(app: App, deps: AuthorityRouteDeps): void {
  const route = {
    method: 'GET',
    tag,
    policy: 'Anonymous',
    rateLimit: 'Api',
    params: tenantParams,
    resource: ({ params }: { params: { tenantId: string } }) =>
      getOrganization(deps.db.read, params.tenantId),
  } as const;
  const missing = refusals('ORGANIZATION_NOT_FOUND', 'TRUST_ANCHOR_NOT_FOUND');
  addRoute(app, {
    ...route,
    path: `${base}/trust-anchor`,
    operationId: 'getTrustAnchor',
    summary: 'The certificate of the authority of an organisation',
    answers: { 200: media('application/pkix-cert', 'The certificate in DER (RFC 2585).') },
    refusals: missing,
    handle: async ({ resource }) => {
      const root = await findRoot(deps.db.read, resource.id);
      if (root === undefined) throw refusal('TRUST_ANCHOR_NOT_FOUND');
      return root.certificate;
    },
  });
  addRoute(app, {
    ...route,
    path: `${base}/crl`,
    operationId: 'getRevocationList',
    summary: 'The revocation list of the authority of an organisation',
    answers: { 200: media('application/pkix-crl', 'The list in DER (RFC 5280); it holds for 24 hours.') },
    refusals: [...missing, ...refusals('CRL_UNAVAILABLE')],
    handle: ({ resource }) => deps.crls.get(resource.id),
  });
}
