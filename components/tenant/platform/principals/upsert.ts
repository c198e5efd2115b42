import { randomUUIDv7 } from 'node:crypto';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { isScope } from '#core/identity/scopes.ts';
import { findServiceName, serviceOf } from '#core/identity/services.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { PrincipalDirectory } from './directory.ts';
import type { StoredPrincipal } from './principal.ts';
import { lockPrincipal, type PrincipalRow, renewPrincipal, upsertPrincipal } from './store.ts';

interface PrincipalSpec {
  readonly clientId: string;
  readonly serviceName: string;
  readonly scopes: readonly string[];
  readonly canSignSystem: boolean;
}

export interface UpsertDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly principals: PrincipalDirectory;
  /** Notifies the other replicas that a principal changed. */
  readonly notify: () => void;
}

/**
 * Creates the principal or replaces its scopes and claims; returns its id. An unchanged principal is not written; a
 * revoked principal gets a new id.
 * @throws AppError invalid, UNKNOWN_SCOPE
 */
export async function upsert(deps: UpsertDeps, spec: PrincipalSpec, by: string): Promise<string> {
  judge(spec);
  const atMs = deps.clock.nowMs();
  const { principalId, changed } = await deps.db.transact(async (tx) => {
    const stored = await lockPrincipal(tx, spec.clientId);
    if (stored !== undefined && isUnchanged(stored, spec))
      return { principalId: stored.principalId, changed: false };
    const id = await write(tx, { id: randomUUIDv7(), ...spec, createdAtMs: atMs }, stored);
    await appendAudit(tx, {
      organizationId: SYSTEM_ORGANIZATION_ID,
      occurredAtMs: atMs,
      type: 'ServicePrincipalUpserted',
      success: true,
      details: { ...spec, principalId: id, by },
    });
    return { principalId: id, changed: true };
  });
  if (changed) {
    deps.principals.invalidate();
    deps.notify();
  }
  return principalId;
}

function isUnchanged(stored: StoredPrincipal, spec: PrincipalSpec): boolean {
  return (
    stored.status !== 'Revoked' &&
    stored.serviceName === spec.serviceName &&
    stored.canSignSystem === spec.canSignSystem &&
    stored.scopes.length === spec.scopes.length &&
    spec.scopes.every((scope) => stored.scopes.includes(scope))
  );
}

async function write(
  tx: Transactor<TenantDatabase>,
  row: PrincipalRow,
  stored: StoredPrincipal | undefined,
): Promise<string> {
  if (stored?.status !== 'Revoked') return upsertPrincipal(tx, row);
  await renewPrincipal(tx, row);
  return row.id;
}

function judge(spec: PrincipalSpec): void {
  const service = findServiceName(spec.clientId);
  if (service === undefined || spec.clientId.length > 128 || spec.serviceName === '') {
    throw new AppError('invalid', genericCode('invalid'), 'The client id or the service name is malformed.');
  }
  if (!spec.scopes.every(isScope)) throw refusal('UNKNOWN_SCOPE');
  if (spec.canSignSystem && serviceOf(service).signsForSystem !== true) {
    throw new AppError(
      'invalid',
      genericCode('invalid'),
      'This service may not hold the system signing claim.',
    );
  }
}
