import type { App } from '#kit/http/http.ts';
import { type DocketsDeps, mountDockets } from './dockets/routes.ts';
import { mountProofs, type ProofsDeps } from './proofs/routes.ts';
import { mountRegisters, type RegistersDeps } from './registers/routes.ts';
import { mountTransactions, type TransactionsDeps } from './transactions/routes.ts';

export interface Deps {
  readonly registers: RegistersDeps;
  readonly transactions: TransactionsDeps;
  readonly dockets: DocketsDeps;
  readonly proofs: ProofsDeps;
}

/** Every HTTP route of the register service. Handlers alone look into what they are given. */
export function mountRoutes(app: App, deps: Deps): void {
  mountRegisters(app, deps.registers);
  mountTransactions(app, deps.transactions);
  mountDockets(app, deps.dockets);
  mountProofs(app, deps.proofs);
}
