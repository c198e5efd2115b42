import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, callerOf, jsonAnswer } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { getRegister } from '../../registers/state/access.ts';
import { listConflicts, resume, type SeenConflict } from './store.ts';

export interface ConflictsDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the register accepts dockets and submissions again. */
  readonly onStatusChanged: () => void;
}

const tags = ['Administration'];
const registerParams = z.object({ registerId: z.string() });

/** Both sides of a conflict: the stored docket, and the conflicting certificate. */
function present(conflict: SeenConflict) {
  return {
    docketNumber: conflict.docketNumber,
    hash: conflict.hash,
    storedHash: conflict.storedHash,
    header: JSON.parse(conflict.header) as unknown,
    certificate: JSON.parse(conflict.certificate) as unknown,
    seenAt: apiTimestamp(conflict.seenAt.getTime()),
  };
}

/** Routes for certificates that contradict a stored docket, and for resuming the register they halted. */
export function mountConflicts(app: App, deps: ConflictsDeps): void {
  app.get(
    '/api/admin/registers/:registerId/conflicts',
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Api' },
      schema: {
        operationId: 'listRegisterConflicts',
        tags,
        summary: 'Certificates that contradict stored dockets',
        params: registerParams,
        response: jsonAnswer('The conflicts.'),
      },
    },
    async (request) => {
      const { registerNo, registerId, status } = await getRegister(
        deps.database.read,
        request.params.registerId,
      );
      const conflicts = await listConflicts(deps.database.read, registerNo);
      return { registerId, status, conflicts: conflicts.map(present) };
    },
  );
  app.post(
    '/api/admin/registers/:registerId/resume-halted',
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Strict' },
      schema: {
        operationId: 'resumeRegister',
        tags,
        summary: 'Resume a register that was halted by two certificates for one height',
        params: registerParams,
        response: jsonAnswer('The register is online again.'),
      },
    },
    async (request) => {
      const { subject } = callerOf(request);
      const { registerNo, registerId } = await getRegister(deps.database.read, request.params.registerId);
      const at = new Date(deps.clock.nowMs());
      const resumed = await deps.database.transact((tx) => resume(tx, { registerNo, registerId, at }));
      if (!resumed) throw refusal('REGISTER_NOT_HALTED');
      deps.log.warn({ registerId, subject }, 'a halted register was resumed');
      deps.onStatusChanged();
      const conflicts = await listConflicts(deps.database.read, registerNo);
      return { registerId, status: 'Online', conflicts: conflicts.map(present) };
    },
  );
}
