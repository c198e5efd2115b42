import { randomBytes } from 'node:crypto';
import { startJob } from '#kit/clock/jobs.ts';
import { openSession, openStore, type ServiceBase, type ServiceParts } from '#kit/service/service.ts';
import { connectIssuers } from './clients/connect-issuers.ts';
import type { CredentialConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { CredentialDatabase } from './database/schema.ts';
import type { CredentialHttpDeps } from './http.ts';
import { Nonces } from './nonces/nonces.ts';
import { ensureNonceSecret } from './nonces/store.ts';
import { expiry } from './upkeep.ts';

export interface Parts extends ServiceParts {
  readonly deps: CredentialHttpDeps;
}

/** Opens the store, the session at the tenant service and the clients, and builds what the areas need. */
export async function assemble(base: ServiceBase<CredentialConfig>): Promise<Parts> {
  const { config, runtime, workload, cleanup } = base;
  const { clock, log } = runtime;
  const db = await openStore<CredentialDatabase>(base, { schema: 'credential', migrations });
  const { authenticator, token } = await openSession(base);
  const issuers = connectIssuers(config, { runtime, workload, token });
  cleanup.add('issuers', () => issuers.close());
  const secret = await db.transact((tx) => ensureNonceSecret(tx, randomBytes(32)));
  const issuerUrl = config.Haip__IssuerUrl;
  const nonces = new Nonces({ secret, issuer: issuerUrl, random: randomBytes });
  const jobs = startJob(expiry({ db, clock }), runtime);
  cleanup.add('expiry', () => jobs.stop());
  const deps: CredentialHttpDeps = { db, clock, log, nonces, issuers, issuerUrl };
  return { authenticator, deps };
}
