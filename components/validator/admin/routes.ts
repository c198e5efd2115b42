import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import { type App, problemSchema } from '#kit/http/http.ts';
import type { Mode } from '../log/entries.ts';
import type { Register } from '../sealing/register.ts';
import { type Act, acts, breaksQuorum, nextMode } from './modes.ts';
import { presentStatus } from './status.ts';

export interface AdminDeps {
  readonly validatorId: string;
  nowMs(): number;
  findRegister(registerId: string): Promise<Register | undefined>;
  allRegisters(): Iterable<Register>;
  setMode(registerId: string, mode: Mode): Promise<void>;
}

const text = z.string();
const actedSchema = z.object({ registerId: text, status: text, message: text });
const statusSchema = z.object({
  registers: z.array(
    z.object({
      registerId: text,
      status: text,
      lastDocketNumber: z.int(),
      memPoolSize: z.int(),
      uptime: text,
      docketsBuilt: z.int(),
      transactionsProcessed: z.int(),
      role: text,
      height: z.int(),
      round: z.int(),
      step: text,
      validatorSetSize: z.int(),
      quorum: z.int(),
      lastCommitAt: text.nullable(),
    }),
  ),
});

/** `POST /api/admin/validation/{start|stop|pause|resume}/{registerId}` and `GET /api/admin/validation/status`. */
export function mountAdmin(app: App, deps: AdminDeps): void {
  for (const act of acts) mountAct(app, deps, act);
  app.get(
    '/api/admin/validation/status',
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Api' },
      schema: {
        summary: 'Validation of every register',
        tags: ['administration'],
        response: { 200: statusSchema },
      },
    },
    async () => ({
      registers: [...deps.allRegisters()].map((register) =>
        presentStatus(register, deps.validatorId, deps.nowMs()),
      ),
    }),
  );
}

function mountAct(app: App, deps: AdminDeps, act: Act): void {
  app.post(
    `/api/admin/validation/${act}/:registerId`,
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Api' },
      schema: {
        summary: `${act} validation of a register`,
        tags: ['administration'],
        params: z.object({ registerId: text }),
        querystring: z.object({
          force: z.stringbool().default(false).describe('stop although the quorum breaks'),
        }),
        response: { 200: actedSchema, 404: problemSchema, 409: problemSchema },
      },
    },
    async (request) => {
      const register = await registerOf(deps, request.params.registerId);
      const before = register.status;
      const mode = nextMode(before, act);
      const { members } = register.state;
      if (act === 'stop' && !request.query.force && breaksQuorum(members.length, register.facts.quorum)) {
        throw new AppError(
          'conflict',
          'QUORUM_WOULD_BREAK',
          'The other members are no quorum; use force=true to stop',
        );
      }
      await deps.setMode(register.id, mode);
      const message = before === mode ? `Validation is ${mode} already` : `Validation is ${mode}`;
      return { registerId: register.id, status: mode, message };
    },
  );
}

async function registerOf(deps: AdminDeps, id: string): Promise<Register> {
  const registerId = findRegisterId(id);
  const register = registerId && (await deps.findRegister(registerId));
  if (!register) throw new AppError('not_found', 'REGISTER_NOT_FOUND', 'The register is not validated here');
  return register;
}
