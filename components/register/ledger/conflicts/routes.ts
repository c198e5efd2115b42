import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal, refusals } from '../../errors.ts';
import { anyRegister } from '../../registers/state/access.ts';
import { registerStatuses } from '../../registers/state/store.ts';
import { certificateSchema, docketHeaderSchema } from '../dockets/schemas.ts';
import { listConflicts, resume, type SeenConflict } from './store.ts';

export interface ConflictsDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the register accepts dockets and submissions again. */
  readonly onStatusChanged: () => void;
}

const conflictsSchema = z
  .object({
    registerId: z.string(),
    status: z.enum(registerStatuses),
    conflicts: z.array(
      z.object({
        docketNumber: z.int(),
        hash: z.string().describe('Hash of the docket that is not stored.'),
        storedHash: z.string().nullable().describe('Hash of the stored docket.'),
        header: docketHeaderSchema,
        certificate: certificateSchema,
        seenAt: z.string().describe('ISO 8601, UTC.'),
      }),
    ),
  })
  .meta({ id: 'RegisterConflicts' });

/** Both sides of a conflict: the stored docket, and the conflicting certificate. */
function present(conflict: SeenConflict) {
  const header: DocketHeader = JSON.parse(conflict.header);
  const certificate: Certificate = JSON.parse(conflict.certificate);
  return {
    docketNumber: conflict.docketNumber,
    hash: conflict.hash,
    storedHash: conflict.storedHash,
    header,
    certificate,
    seenAt: apiTimestamp(conflict.seenAt.getTime()),
  };
}

/** Routes for certificates that contradict a stored docket, and for resuming the register they halted. */
export function mountConflicts(app: App, deps: ConflictsDeps): void {
  const route = {
    tag: 'Administration',
    policy: 'RequireSystemAdmin',
    params: z.object({ registerId: z.string() }),
    resource: anyRegister(() => deps.database.read),
  } as const;

  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/admin/registers/:registerId/conflicts',
    operationId: 'listRegisterConflicts',
    summary: 'Certificates that contradict stored dockets',
    rateLimit: 'Api',
    answers: { 200: json('The conflicts.', conflictsSchema) },
    refusals: refusals('REGISTER_NOT_FOUND'),
    handle: async ({ resource: { registerNo, registerId, status } }) => {
      const conflicts = await listConflicts(deps.database.read, registerNo);
      return { registerId, status, conflicts: conflicts.map(present) };
    },
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/admin/registers/:registerId/resume-halted',
    operationId: 'resumeRegister',
    summary: 'Resume a register that was halted by two certificates for one height',
    rateLimit: 'Strict',
    answers: { 200: json('The register is online again.', conflictsSchema) },
    refusals: refusals('REGISTER_NOT_FOUND', 'REGISTER_NOT_HALTED'),
    handle: async ({ caller: { subject }, resource: { registerNo, registerId } }) => {
      const at = new Date(deps.clock.nowMs());
      const resumed = await deps.database.transact((tx) => resume(tx, { registerNo, registerId, at }));
      if (!resumed) throw refusal('REGISTER_NOT_HALTED');
      deps.log.warn({ registerId, subject }, 'a halted register was resumed');
      deps.onStatusChanged();
      const conflicts = await listConflicts(deps.database.read, registerNo);
      return { registerId, status: 'Online' as const, conflicts: conflicts.map(present) };
    },
  });
}
