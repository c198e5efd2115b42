import { createPublicKey, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { findSpkiKey } from '#core/crypto/signature-key.ts';
import { equalBytes } from '#core/encoding/text.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import { parseCertificate } from '#core/trust/certificate.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { type Outbound, OutboundError } from '#kit/outbound/outbound.ts';
import { testCaller } from '#kit/testing/callers.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import { migrations } from '../database/migrations/list.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type { HolderRpcDeps } from '../holder/rpc.ts';
import { type CredentialHttpDeps, mountRoutes } from '../http.ts';
import { Nonces } from '../issuer/nonces/nonces.ts';
import { ensureSecret } from '../issuer/nonces/store.ts';
import type { Issuer, Issuers } from '../issuer/signing/issuers.ts';
import { createMeter } from '../metrics.ts';
import { StatusLists } from '../status/tokens.ts';
import { readIdentity, type VerifierIdentity, verifiersOf } from '../verifier/identity/identity.ts';
import { selfSignedBundle } from '../verifier/identity/self-signed.ts';
import { StatusReader } from '../verifier/presentations/status.ts';
import { RevocationLists } from '../verifier/trust-sources/revocation-lists.ts';
import type { AnchorList, TrustSources } from '../verifier/trust-sources/trust-sources.ts';
import { type IssuingCertificate, issuingCertificate } from './issuing-certificates.ts';
import { TestRegisters } from './registers.ts';

export const startMs = Date.UTC(2026, 10, 27, 12);
export const issuerUrl = 'https://issuer.test';

/** An organisation that issues, as the tenant and the wallet service know it. */
export interface IssuingOrganization extends Issuer {
  certificate: IssuingCertificate;
}

/** The credential service without listeners, with doubles of the tenant and the wallet service. */
export interface Fixture {
  readonly app: App;
  readonly db: Database<CredentialDatabase>;
  readonly clock: ManualClock;
  readonly runtime: TestRuntime;
  readonly deps: CredentialHttpDeps & HolderRpcDeps;
  readonly organization: IssuingOrganization;
  /** Callers by the text of their `Authorization` header. */
  readonly callers: Map<string, Caller>;
  /** The identities of the verifier, the present one first. */
  readonly verifier: { identities: readonly [VerifierIdentity, ...VerifierIdentity[]] };
  /** What the two services answer in place of what they would. */
  readonly outage: { chain?: Error; sign?: Error; anchor?: Error };
  /** Certificates that the authority of the organisation has revoked, by thumbprint. */
  readonly revoked: Set<string>;
  readonly revocations: RevocationLists;
  /** Trust lists by id. */
  readonly trustLists: Map<string, AnchorList>;
  /** Answers of other hosts by address; others cannot be reached. */
  readonly elsewhere: Map<string, Buffer>;
  /** Addresses of other hosts that were asked. */
  readonly fetched: string[];
  /** The register service. */
  readonly registers: TestRegisters;
  /** A second replica on the same database. */
  replica(): App;
  close(): Promise<void>;
}

/** Settings that change what is served. */
type Served = Pick<CredentialHttpDeps, 'profile' | 'authorities' | 'requiresKeyAttestation'>;

export async function openFixture(name: string, served: Partial<Served> = {}): Promise<Fixture> {
  const clock = manualClock(startMs);
  const runtime = testRuntime('service-credential', { clock });
  const { log, telemetry } = runtime;
  const url = await testDatabase(name);
  const db = await openDatabase<CredentialDatabase>({
    url,
    schema: 'credential',
    log,
    telemetry,
    migrations,
  });
  const organization = await issuingOrganization();
  const outage: Fixture['outage'] = {};
  const revoked = new Set<string>();
  const trustLists = new Map<string, AnchorList>();
  const elsewhere = new Map<string, Buffer>();
  const fetched: string[] = [];
  const sources = sourcesOf({ organization, outage, revoked, trustLists });
  const verifier: Fixture['verifier'] = { identities: [await verifierIdentity()] };
  const secret = await db.transact((tx) => ensureSecret(tx, 'nonces', randomBytes(32)));
  const issuers = issuersOf({ organization, outage });
  const issuing = { db, clock, issuers, issuerUrl };
  const lists = new StatusLists(issuing);
  const outbound = outboundOf({ elsewhere, fetched });
  const registers = new TestRegisters();
  const revocations = new RevocationLists({ clock, log, outbound });
  const deps: Fixture['deps'] = {
    ...issuing,
    lists,
    profile: 'openid4vc-1.0',
    authorities: [],
    requiresKeyAttestation: false,
    ...served,
    sources,
    verifiers: verifiersOf(() => verifier.identities),
    outbound,
    registers,
    verifierAuthorities: [],
    revocations,
    statuses: new StatusReader({ clock, outbound, findOwnList: (uri) => lists.findOwn(uri) }),
    log,
    meter: createMeter(telemetry),
    nonces: new Nonces({ secret, issuer: issuerUrl, random: randomBytes }),
  };
  const callers = new Map<string, Caller>();
  callers.set('Bearer service', caller({ kind: 'service', tier: 'service', clientId: 'service-blueprint' }));
  const apps: App[] = [];
  const open = () => {
    const app = appOf(runtime, deps, callers);
    apps.push(app);
    return app;
  };
  return {
    app: open(),
    db,
    clock,
    runtime,
    deps,
    organization,
    callers,
    verifier,
    outage,
    revoked,
    revocations,
    trustLists,
    elsewhere,
    fetched,
    registers,
    replica: open,
    close: async () => {
      await Promise.all(apps.map((app) => app.close()));
      await db.close();
    },
  };
}

/** An identity of the verifier of tests, with a certificate of its own. */
export async function verifierIdentity(): Promise<VerifierIdentity> {
  const bundle = Buffer.from(await selfSignedBundle('issuer.test', startMs));
  return readIdentity(bundle, { host: 'issuer.test', mayBeSelfSigned: true, nowMs: startMs });
}

async function issuingOrganization(): Promise<IssuingOrganization> {
  return {
    organizationId: randomUUID(),
    walletAddress: `w1q${'z'.repeat(58)}`,
    trustAnchor: 'x509-tenant',
    certificate: await issuingCertificate('issuer.test', startMs),
  };
}

function issuersOf({ organization, outage }: Pick<Fixture, 'organization' | 'outage'>): Issuers {
  return {
    chainOf: async (issuer) => {
      if (outage.chain !== undefined) throw outage.chain;
      if (issuer.walletAddress !== organization.walletAddress) throw refusal('ISSUER_WALLET_MISMATCH');
      return issuer.trustAnchor === 'register' ? [] : organization.certificate.chain;
    },
    sign: async (_address, digest) => {
      if (outage.sign !== undefined) throw outage.sign;
      return organization.certificate.sign(digest);
    },
  };
}

/** Other hosts; addresses that are asked are added to `fetched`. */
function outboundOf({ elsewhere, fetched }: Pick<Fixture, 'elsewhere' | 'fetched'>): Pick<Outbound, 'send'> {
  return {
    send: async (uri) => {
      fetched.push(uri);
      const body = elsewhere.get(uri);
      if (body === undefined) throw new OutboundError('unreachable');
      return { status: 200, headers: {}, body };
    },
  };
}

type Doubled = Pick<Fixture, 'organization' | 'outage' | 'revoked' | 'trustLists'>;

/** The authority of the organisation, its DID, and trust lists. */
function sourcesOf({ organization, outage, revoked, trustLists }: Doubled): TrustSources {
  return {
    findTenantAnchor: async (certificate) => {
      if (outage.anchor !== undefined) throw outage.anchor;
      const { chain, rootPem } = organization.certificate;
      const isOurs = chain.some((der) => Buffer.compare(Buffer.from(der), certificate.der) === 0);
      if (!isOurs) return undefined;
      const anchor = parseCertificate(new X509Certificate(rootPem).raw);
      return { anchor, verdict: revoked.has(certificate.thumbprint) ? 'Revoked' : 'Good' };
    },
    findTrustList: async (id) => trustLists.get(id),
    findListedIssuers: async ({ issuer }) =>
      [...trustLists].flatMap(([trustListId, { snapshot }]) => {
        const anchors = snapshot.anchors.filter(({ subject }) => equalBytes(subject, issuer));
        const { sequenceNumber } = snapshot;
        return anchors.length === 0 ? [] : [{ trustListId, sequenceNumber, anchors }];
      }),
    findOrganizationKey: async (address) => {
      if (address !== organization.walletAddress) return undefined;
      const spki = createPublicKey(organization.certificate.privateKey).export({
        format: 'der',
        type: 'spki',
      });
      return findSpkiKey(spki);
    },
  };
}

function appOf(runtime: TestRuntime, deps: CredentialHttpDeps, callers: ReadonlyMap<string, Caller>): App {
  const app = createHttpServer({ runtime, title: 'credential' });
  app.addHook('onRequest', async (request) => {
    const { policy = 'Anonymous' } = request.routeOptions.config;
    if (policy === 'Anonymous') return;
    const found = callers.get(request.headers.authorization ?? '');
    if (found === undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'no token');
    request.caller = found;
    if (decide(policy, found) !== 'allow') throw new AppError('forbidden', 'FORBIDDEN', 'refused');
  });
  mountRoutes(app, deps);
  return app;
}

export const caller = (change: Partial<Caller> = {}): Caller => testCaller(startMs, change);
