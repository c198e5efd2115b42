import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { administeredTenant } from '../requests/organization.ts';
import { walletParams } from '../requests/params.ts';
import { type ChainRefusal, getIssuerChain } from './chain.ts';
import { type EnrolDeps, enrol } from './enrol.ts';
import { importCertificate } from './import.ts';
import { judgeCertificate, judgeEligibility } from './judge.ts';
import { requestCertificate } from './request.ts';
import { retireCertificate, revokeCertificates } from './revoke.ts';
import { certificateSchema, eligibilitySchema, presentCertificate, presentEligibility } from './schemas.ts';
import { listCertificates, type Provenance } from './store.ts';

const base = '/api/v1/trust/tenants/:tenantId/orgs/:orgWalletAddress';
const tag = 'Organisation certificates';
const newest = 100;
const pemLength = 16_384;

const foreign = refusals('FOREIGN_ORGANIZATION', 'ORGANIZATION_NOT_FOUND');
const ofKey = refusals('WALLET_NOT_FOUND', 'WALLET_LOCKED', 'CERT_KEY_NOT_ELIGIBLE', 'WALLETS_UNAVAILABLE');
const examplePem = '-----BEGIN CERTIFICATE-----\nMIIB...\n-----END CERTIFICATE-----\n';

function administered(deps: EnrolDeps) {
  return {
    tag,
    policy: 'RequireAdministrator',
    rateLimit: 'Strict',
    params: walletParams,
    resource: administeredTenant(() => deps.db.read),
  } as const;
}

/** Certificates of the keys of organisations (specification document 3, "Trust administration"). */
export function mountCertificates(app: App, deps: EnrolDeps): void {
  mountReads(app, deps);
  mountOwn(app, deps);
  mountImported(app, deps);
}

function mountReads(app: App, deps: EnrolDeps): void {
  addRoute(app, {
    ...administered(deps),
    method: 'GET',
    path: `${base}/certificates`,
    operationId: 'listCertificates',
    summary: 'The certificates of an organisation',
    description: `The newest ${newest}, of earlier wallets too.`,
    answers: {
      200: json(
        'The certificates, the newest first, and whether the wallet has a key for them.',
        z.object({ certificates: z.array(certificateSchema), eligibility: eligibilitySchema }),
      ),
    },
    refusals: [...foreign, ...refusals('WALLET_NOT_FOUND', 'WALLETS_UNAVAILABLE')],
    handle: async ({ resource: { id: organizationId }, params }) => {
      const owner = { organizationId, walletAddress: params.orgWalletAddress };
      const eligibility = await judgeEligibility(deps, owner);
      const stored = await listCertificates(deps.db.read, organizationId, newest);
      const judged = await Promise.all(
        stored.map((certificate) => judgeCertificate(deps, certificate, eligibility.key)),
      );
      return {
        certificates: judged.map(presentCertificate),
        eligibility: presentEligibility(eligibility),
      };
    },
  });
  mountChain(app, deps, { path: 'cert-chain', provenance: 'Internal', code: 'CERT_NOT_ENROLLED' });
  mountChain(app, deps, {
    path: 'imported-cert-chain',
    provenance: 'Imported',
    code: 'CERTIFICATE_NOT_FOUND',
  });
}

interface ChainRoute {
  readonly path: string;
  readonly provenance: Provenance;
  readonly code: ChainRefusal;
}

function mountChain(app: App, deps: EnrolDeps, { path, provenance, code }: ChainRoute): void {
  const isImported = provenance === 'Imported';
  addRoute(app, {
    method: 'GET',
    path: `${base}/${path}`,
    operationId: isImported ? 'getImportedCertificateChain' : 'getCertificateChain',
    tag,
    summary: `The chain of the ${isImported ? 'imported' : 'own'} certificate of an organisation`,
    policy: 'Anonymous',
    rateLimit: 'Api',
    params: walletParams,
    answers: {
      200: json(
        'The chain without its anchor.',
        z.object({ chain: z.array(z.string()).describe('DER in base64, the leaf first.') }),
      ),
    },
    refusals: refusals(code, 'WALLETS_UNAVAILABLE'),
    handle: async ({ params: { tenantId, orgWalletAddress } }) => {
      const owner = { organizationId: tenantId, walletAddress: orgWalletAddress };
      const chain = await getIssuerChain(deps, owner, { provenance, mayBeRetired: false, code });
      return { chain: chain.map((der) => der.toString('base64')) };
    },
  });
}

function mountOwn(app: App, deps: EnrolDeps): void {
  const route = { ...administered(deps), method: 'POST' } as const;
  addRoute(app, {
    ...route,
    path: `${base}/enrol`,
    operationId: 'issueCertificate',
    summary: 'Issue the certificate of an organisation by its own authority',
    description: 'The key is that of the wallet. An earlier certificate is superseded and not revoked.',
    body: { schema: z.object({}).nullish(), example: {} },
    answers: { 200: json('The certificate.', certificateSchema) },
    refusals: [...foreign, ...ofKey],
    handle: async ({ resource: organization, params, caller, request }) => {
      const change = { organization, caller, origin: originOf(request) };
      return presentCertificate(await enrol(deps, params.orgWalletAddress, change));
    },
  });
  addRoute(app, {
    ...route,
    path: `${base}/revoke`,
    operationId: 'revokeCertificates',
    summary: 'Revoke the certificates of an organisation by its own authority',
    description:
      'All of the wallet that are not expired. Names of CRL reasons (RFC 5280) appear in the list; after `keyCompromise` the key gets no certificate any more, and issues nothing under an imported one.',
    body: {
      schema: z.object({ reason: readableName.max(200) }),
      example: { reason: 'cessationOfOperation' },
    },
    answers: {
      200: json('What is revoked.', z.object({ certificates: z.array(certificateSchema) })),
    },
    refusals: [...foreign, ...refusals('CERT_NOT_ENROLLED')],
    handle: async ({ resource: organization, params, body, caller, request }) => {
      const change = { organization, caller, origin: originOf(request) };
      const revocation = { walletAddress: params.orgWalletAddress, reason: body.reason };
      const revoked = await revokeCertificates(deps, revocation, change);
      return { certificates: revoked.map(presentCertificate) };
    },
  });
}

function mountImported(app: App, deps: EnrolDeps): void {
  const route = administered(deps);
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${base}/csr`,
    operationId: 'createCertificateRequest',
    summary: 'Request a certificate of another CA for the key of an organisation',
    body: {
      schema: z
        .object({
          subjectDn: z.string().min(1).max(512).optional().describe('CN=Example, O=Example Ltd, C=DE'),
        })
        .nullish(),
      example: { subjectDn: 'CN=Analytical Engines, O=Analytical Engines, C=GB' },
    },
    answers: {
      200: json(
        'The request.',
        z.object({
          csrPem: z.string().describe('PKCS #10 (RFC 2986) in PEM.'),
          boundKeySource: certificateSchema.shape.boundKeySource,
          boundPublicKeyThumbprint: certificateSchema.shape.boundPublicKeyThumbprint,
        }),
      ),
    },
    refusals: [...foreign, ...ofKey],
    handle: async ({ resource: organization, params, body }) => {
      const { csrPem, key } = await requestCertificate(deps, {
        organization,
        walletAddress: params.orgWalletAddress,
        subjectDn: body?.subjectDn,
      });
      return { csrPem, boundKeySource: key.source, boundPublicKeyThumbprint: key.thumbprint };
    },
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${base}/certificates/import`,
    operationId: 'addImportedCertificate',
    summary: 'Import a certificate that another CA issued for the key of an organisation',
    description:
      'It replaces the imported certificate in use. The CAs may come in any order; the root is optional.',
    bodyLimitBytes: 262_144,
    body: {
      schema: z.object({
        certificatePem: z.string().min(1).max(pemLength),
        chainPem: z.array(z.string().min(1).max(pemLength)).max(10).default([]),
      }),
      example: { certificatePem: examplePem, chainPem: [examplePem] },
    },
    answers: { 201: json('The certificate.', certificateSchema) },
    refusals: [
      ...foreign,
      ...ofKey,
      ...refusals('CERT_KEY_MISMATCH', 'CERT_CHAIN_INVALID', 'CERT_EXPIRED', 'CERT_UNSUITABLE'),
    ],
    handle: async ({ resource: organization, params, body, caller, request }) => {
      const change = { organization, caller, origin: originOf(request) };
      const upload = { ...body, walletAddress: params.orgWalletAddress };
      return answer(201, presentCertificate(await importCertificate(deps, upload, change)));
    },
  });
  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: `${base}/certificates/:certificateId`,
    operationId: 'removeImportedCertificate',
    summary: 'Retire an imported certificate',
    params: walletParams.extend({ certificateId: identifier }),
    answers: { 204: empty('It is no longer used.') },
    refusals: [...foreign, ...refusals('CERTIFICATE_NOT_FOUND')],
    handle: ({ resource: organization, params, caller, request }) => {
      const change = { organization, caller, origin: originOf(request) };
      const retired = { walletAddress: params.orgWalletAddress, id: params.certificateId };
      return retireCertificate(deps, retired, change);
    },
  });
}
