import { z } from 'zod';
import { parseCheckpoint } from '#core/ledger/checkpoint.ts';
import { EXPORT_MEDIA_TYPE } from '#core/ledger/export/lines.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, callerOf, textAnswer } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { getVisibleRegister } from '../../registers/state/access.ts';
import type { Checkpoints } from '../proofs/checkpoint.ts';
import type { Exports } from './exports.ts';

export interface ExportDeps {
  readonly db: Reader<RegisterSchema>;
  readonly checkpoints: Checkpoints;
  readonly exports: Exports;
}

export function mountExport(app: App, deps: ExportDeps): void {
  app.get(
    '/api/registers/:registerId/export',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      // answering HEAD would cost as much as the whole export
      exposeHeadRoute: false,
      schema: {
        operationId: 'exportRegister',
        tags: ['Proofs'],
        summary: 'The whole register as JSON lines, which chancery verify checks offline',
        params: z.object({ registerId: z.string() }),
        response: textAnswer('application/x-ndjson', 'One JSON text a line.'),
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const register = await getVisibleRegister(deps.db, caller, request.params.registerId);
      const { registerId, registerNo } = register;
      // signed before the first byte: the export has this size, whatever is sealed meanwhile
      const checkpoint = await deps.checkpoints.checkpoint(register);
      const { size } = parseCheckpoint(checkpoint);
      const stream = deps.exports.open({ registerNo, registerId, size, checkpoint }, caller.subject);
      reply.header('content-disposition', `attachment; filename="register-${registerId}.jsonl"`);
      return reply.type(EXPORT_MEDIA_TYPE).send(stream);
    },
  );
}
