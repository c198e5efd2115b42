import type { Idempotency } from '#kit/db/idempotency.ts';
import type { App } from '#kit/http/http.ts';
import { type Hub, mountHub } from '#kit/hub/hub.ts';
import { type BlueprintsDeps, mountBlueprints } from './blueprints/publishing/routes.ts';
import { mountPolicy, type PolicyDeps } from './governance/policy/routes.ts';
import { type GovernanceDeps, mountGovernance } from './governance/proposals/routes.ts';
import { mountValidators, type ValidatorsDeps } from './governance/validators/routes.ts';
import { type ConflictsDeps, mountConflicts } from './ledger/conflicts/routes.ts';
import { mountRecovery, type RecoveryRouteDeps } from './ledger/recovery/routes.ts';
import { type DocketsDeps, mountDockets } from './ledger/service/routes.ts';
import { mountTransactions, type TransactionsDeps } from './ledger/transactions/routes.ts';
import { mountQueries, type QueriesDeps } from './queries/activity/routes.ts';
import { type ExportDeps, mountExport } from './queries/export/routes.ts';
import { mountOData, type ODataDeps } from './queries/odata/routes.ts';
import { mountParticipants, type ParticipantsDeps } from './queries/participants/routes.ts';
import { mountProjection, type ProjectionRouteDeps } from './queries/projection/routes.ts';
import { mountProofs, type ProofsDeps } from './queries/proofs/routes.ts';
import { registerHubPath } from './registers/hub/hub.ts';
import { mountRegisters, type RegistersDeps } from './registers/lifecycle/routes.ts';
import { type ManagedDeps, mountManaged } from './registers/managed/routes.ts';
import { mountSystemRegister, type SystemRegisterDeps } from './system/system-register/routes.ts';

export interface Deps {
  /** Of the routes that take an Idempotency-Key. */
  readonly idempotency: Idempotency;
  readonly registers: Omit<RegistersDeps, 'idempotency'>;
  readonly transactions: Omit<TransactionsDeps, 'idempotency'>;
  readonly dockets: DocketsDeps;
  readonly proofs: ProofsDeps;
  readonly export: ExportDeps;
  readonly governance: Omit<GovernanceDeps, 'idempotency'>;
  readonly policy: Omit<PolicyDeps, 'idempotency'>;
  readonly validators: ValidatorsDeps;
  readonly conflicts: ConflictsDeps;
  readonly projection: ProjectionRouteDeps;
  readonly managed: Omit<ManagedDeps, 'idempotency'>;
  readonly odata: ODataDeps;
  readonly queries: QueriesDeps;
  readonly participants: ParticipantsDeps;
  readonly blueprints: Omit<BlueprintsDeps, 'idempotency'>;
  readonly systemRegister: SystemRegisterDeps;
  readonly recovery: RecoveryRouteDeps;
}

/**
 * Mounts every HTTP route of the register service, and its hub. Members of `deps` and `hub` are read by handlers only.
 */
export function mountRoutes(app: App, deps: Deps, hub: Hub): void {
  const { idempotency } = deps;
  mountRegisters(app, { ...deps.registers, idempotency });
  mountTransactions(app, { ...deps.transactions, idempotency });
  mountDockets(app, deps.dockets);
  mountProofs(app, deps.proofs);
  mountExport(app, deps.export);
  mountGovernance(app, { ...deps.governance, idempotency });
  mountPolicy(app, { ...deps.policy, idempotency });
  mountValidators(app, deps.validators);
  mountConflicts(app, deps.conflicts);
  mountProjection(app, deps.projection);
  mountManaged(app, { ...deps.managed, idempotency });
  mountOData(app, deps.odata);
  mountQueries(app, deps.queries);
  mountParticipants(app, deps.participants);
  mountBlueprints(app, { ...deps.blueprints, idempotency });
  mountSystemRegister(app, deps.systemRegister);
  mountRecovery(app, deps.recovery);
  mountHub(app, registerHubPath, () => hub);
}
