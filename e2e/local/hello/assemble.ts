import { openSession, openStore, type ServiceBase, type ServiceParts } from '#kit/service/service.ts';
import type { HelloConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { HelloDatabase } from './database/schema.ts';
import type { HelloHttpDeps } from './http.ts';

export interface Parts extends ServiceParts {
  readonly deps: HelloHttpDeps;
}

/** Opens the store and the session at the tenant service, and builds what the areas need. */
export async function assemble(base: ServiceBase<HelloConfig>): Promise<Parts> {
  const db = await openStore<HelloDatabase>(base, { schema: 'hello', migrations });
  const { authenticator } = await openSession(base);
  return { authenticator, deps: { db } };
}
