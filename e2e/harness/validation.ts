import { z } from 'zod';
import type { Api } from './api.ts';

const member = z.object({
  validatorId: z.string(),
  reachable: z.boolean(),
  status: z.string().optional(),
  reason: z.string().optional(),
  volumeBehind: z.object({ held: z.number(), chain: z.number() }).optional(),
  height: z.number().optional(),
  step: z.string().optional(),
  lastDocketNumber: z.number().optional(),
});

const set = z.object({
  registerId: z.string(),
  status: z.string(),
  lastDocketNumber: z.number(),
  memPoolSize: z.number(),
  height: z.number(),
  round: z.number(),
  proposer: z.string(),
  validatorSetSize: z.number(),
  quorum: z.number(),
  operational: z.number(),
  quorumAvailable: z.boolean(),
  members: z.array(member),
});

const status = z.object({
  registers: z.array(set),
  validators: z.array(
    z.object({
      validatorId: z.string(),
      reachable: z.boolean(),
      conditions: z.array(z.object({ type: z.string(), reason: z.string(), message: z.string() })),
    }),
  ),
});

const consensus = z.object({
  rounds: z.number(),
  roundsFailed: z.number(),
  votesCast: z.number(),
  evidenceCount: z.number(),
  byRegister: z.array(
    z.object({
      registerId: z.string(),
      height: z.number(),
      round: z.number(),
      proposer: z.string(),
      quorum: z.number(),
      quorumAvailable: z.boolean(),
      roundsFailed: z.number(),
      unreachable: z.array(z.string()),
    }),
  ),
});

/** A register in the status that all validators report together. */
export type SetStatus = z.output<typeof set>;

/** `GET /api/admin/validation/status`. */
export async function validationStatus(api: Api, token: string): Promise<z.output<typeof status>> {
  return status.parse((await api.expect(200, 'GET', '/api/admin/validation/status', { token })).body);
}

/** The status of one register; throws when it is missing. */
export async function setStatus(api: Api, token: string, registerId: string): Promise<SetStatus> {
  const { registers } = await validationStatus(api, token);
  const found = registers.find((one) => one.registerId === registerId);
  if (found === undefined) throw new Error(`no validator knows register ${registerId}`);
  return found;
}

/** `GET /api/metrics/consensus`. */
export async function consensusMetrics(api: Api, token: string): Promise<z.output<typeof consensus>> {
  return consensus.parse((await api.expect(200, 'GET', '/api/metrics/consensus', { token })).body);
}
