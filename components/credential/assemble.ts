import { randomBytes } from 'node:crypto';
import type { Certificate } from '#core/trust/certificate.ts';
import { startJob, startJobs } from '#kit/clock/jobs.ts';
import { ConfigError } from '#kit/config/config.ts';
import type { Database } from '#kit/db/db.ts';
import { createOutbound } from '#kit/outbound/outbound.ts';
import { openSession, openStore, type ServiceBase, type ServiceParts } from '#kit/service/service.ts';
import { auditReports } from './audit/report.ts';
import { connectAudit } from './clients/connect-audit.ts';
import { connectIssuers } from './clients/connect-issuers.ts';
import { connectRegisters } from './clients/connect-registers.ts';
import { connectTrust } from './clients/connect-trust.ts';
import type { CredentialConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { CredentialDatabase } from './database/schema.ts';
import type { HolderRpcDeps } from './holder/rpc.ts';
import type { CredentialHttpDeps } from './http.ts';
import { Nonces } from './issuer/nonces/nonces.ts';
import { ensureSecret } from './issuer/nonces/store.ts';
import { createMeter } from './metrics.ts';
import { isHighAssurance } from './protocol/profile.ts';
import { recordChanges } from './recording/job.ts';
import { StatusLists } from './status/tokens.ts';
import { expiry } from './upkeep.ts';
import { readAuthorities } from './verifier/identity/authorities.ts';
import { readIdentity, type Verifiers, verifiersOf } from './verifier/identity/identity.ts';
import { VerifierFile } from './verifier/identity/load.ts';
import { selfSignedBundle } from './verifier/identity/self-signed.ts';
import { StatusReader } from './verifier/presentations/status.ts';
import { RevocationLists } from './verifier/trust-sources/revocation-lists.ts';

export interface Parts extends ServiceParts {
  readonly deps: CredentialHttpDeps & HolderRpcDeps;
}

/** Opens the store, the session at the tenant service and the clients, and builds what the areas need. */
export async function assemble(base: ServiceBase<CredentialConfig>): Promise<Parts> {
  const { config, runtime, workload, cleanup } = base;
  const { clock, log } = runtime;
  const db = await openStore<CredentialDatabase>(base, { schema: 'credential', migrations });
  const { authenticator, token } = await openSession(base);
  const issuers = connectIssuers(config, { runtime, workload, token });
  cleanup.add('issuers', () => issuers.close());
  const sources = connectTrust(config, { runtime, workload, token });
  cleanup.add('trust sources', () => sources.close());
  const outbound = createOutbound({ allowed: config.CHANCERY_OUTBOUND_ALLOWED });
  cleanup.add('outbound', () => outbound.close());
  const issuerUrl = config.Haip__IssuerUrl;
  const nonces = await openNonces(db, issuerUrl);
  const audit = connectAudit(config.CHANCERY_TENANT_GRPC, { runtime, workload, token });
  cleanup.add('audit', () => audit.close());
  const registers = connectRegisters(config.CHANCERY_REGISTER_HTTPS, { runtime, workload, token });
  cleanup.add('registers', () => registers.close());
  const recording = recordChanges({ db, clock, issuers, sources, registers, log });
  const revocations = new RevocationLists({ clock, log, outbound });
  const reports = auditReports({ db, send: audit.send });
  const jobs = startJobs([expiry({ db, clock }), reports, recording, revocations.refreshing()], runtime);
  cleanup.add('jobs', () => jobs.stop());
  const verifiers = await openVerifiers(base, db);
  const issuing = { db, clock, issuers, issuerUrl };
  const lists = new StatusLists(issuing);
  const statuses = new StatusReader({ clock, outbound, findOwnList: (uri) => lists.findOwn(uri) });
  const deps: Parts['deps'] = {
    ...issuing,
    log,
    meter: createMeter(runtime.telemetry),
    nonces,
    verifiers,
    sources,
    revocations,
    statuses,
    lists,
    outbound,
    registers,
    verifierAuthorities: verifierAuthoritiesOf(config),
    profile: config.Haip__Profile,
    authorities: authoritiesOf(config),
    requiresKeyAttestation: config.Haip__RequireKeyAttestation,
  };
  return { authenticator, deps };
}

/** @throws ConfigError where the profile needs authorities and none are named */
function authoritiesOf({
  Haip__Profile: profile,
  Haip__AttestationAuthorities: path,
  Haip__RequireKeyAttestation: requiresKeys,
}: CredentialConfig): readonly Certificate[] {
  if (path !== undefined) return readAuthorities('Haip__AttestationAuthorities', path);
  if (isHighAssurance(profile) || requiresKeys)
    throw new ConfigError([
      { name: 'Haip__AttestationAuthorities', message: 'is required: attested wallets or keys are' },
    ]);
  return [];
}

function verifierAuthoritiesOf({
  Haip__VerifierAuthorities: path,
}: CredentialConfig): readonly Certificate[] {
  return path === undefined ? [] : readAuthorities('Haip__VerifierAuthorities', path);
}

async function openNonces(db: Database<CredentialDatabase>, issuer: string): Promise<Nonces> {
  const secret = await db.transact((tx) => ensureSecret(tx, 'nonces', randomBytes(32)));
  return new Nonces({ secret, issuer, random: randomBytes });
}

const reloadEveryMs = 30_000;

/**
 * The identity of the verifier: that of the settings, read again when its file changes; in development a self-signed one
 * that all replicas share.
 * @throws ConfigError
 */
async function openVerifiers(
  { config, runtime, cleanup }: ServiceBase<CredentialConfig>,
  db: Database<CredentialDatabase>,
): Promise<Verifiers> {
  const { clock, log } = runtime;
  const host = config.Haip__PublicHost ?? new URL(config.Haip__IssuerUrl).hostname;
  const path = config.Haip__VerifierCertificate;
  if (path !== undefined) {
    const mayBeSelfSigned = !isHighAssurance(config.Haip__Profile);
    const password = config.Haip__VerifierCertificatePassword?.text();
    const file = new VerifierFile({ path, host, password, mayBeSelfSigned, nowMs: () => clock.nowMs() });
    const reading = { name: 'verifier-certificate', everyMs: reloadEveryMs, run: async () => file.reload() };
    const job = startJob(reading, runtime);
    cleanup.add('verifier certificate', () => job.stop());
    return verifiersOf(() => file.identities());
  }
  if (isHighAssurance(config.Haip__Profile) || config.CHANCERY_RATE_LIMIT_PROFILE !== 'development')
    throw new ConfigError([
      {
        name: 'Haip__VerifierCertificate',
        message: 'is required in the production profile, and in haip-1.0',
      },
    ]);
  const made = Buffer.from(await selfSignedBundle(host, clock.nowMs()));
  const bundle = await db.transact((tx) => ensureSecret(tx, `verifier ${host}`, made));
  log.warn({ host }, 'requests for presentations are signed with a self-signed certificate');
  const identity = readIdentity(bundle, { host, mayBeSelfSigned: true, nowMs: clock.nowMs() });
  return verifiersOf(() => [identity]);
}
