import { z } from 'zod';
import { parseCheckpoint } from '#core/ledger/checkpoint.ts';
import { EXPORT_MEDIA_TYPE } from '#core/ledger/export/lines.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, answer, media } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { ofCheckpoint, ofVisibleRegister, refusals } from '../../errors.ts';
import { visibleRegister } from '../../registers/state/access.ts';
import type { Checkpoints } from '../proofs/checkpoint.ts';
import type { Exports } from './exports.ts';

export interface ExportDeps {
  readonly db: Reader<RegisterSchema>;
  readonly checkpoints: Checkpoints;
  readonly exports: Exports;
}

export function mountExport(app: App, deps: ExportDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/registers/:registerId/export',
    operationId: 'exportRegister',
    tag: 'Proofs',
    summary: 'The whole register as JSON lines, which chancery verify checks offline',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    params: z.object({ registerId: z.string() }),
    answers: { 200: media('application/x-ndjson', 'One JSON text a line.') },
    refusals: [...ofVisibleRegister, ...ofCheckpoint, ...refusals('EXPORT_LIMIT', 'EXPORTS_BUSY')],
    // answering HEAD would cost as much as the whole export
    withoutHead: true,
    resource: visibleRegister(() => deps.db),
    handle: async ({ caller, resource: register }) => {
      const { registerId, registerNo } = register;
      // signed before the first byte: the export has this size, whatever is sealed meanwhile
      const checkpoint = await deps.checkpoints.checkpoint(register);
      const { size } = parseCheckpoint(checkpoint);
      const stream = deps.exports.open({ registerNo, registerId, size, checkpoint }, caller.subject);
      return answer(200, stream, {
        'content-disposition': `attachment; filename="register-${registerId}.jsonl"`,
        'content-type': EXPORT_MEDIA_TYPE,
      });
    },
  });
}
