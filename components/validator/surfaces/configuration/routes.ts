import { z } from 'zod';
import { utf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import { type App, addRoute, bearerOf, json } from '#kit/http/http.ts';
import type { LogLevel } from '#kit/log/log.ts';
import { failure, refusals } from '../../errors.ts';
import { type CollectReportsDeps, listValidators } from '../reports/collect-reports.ts';
import type { ConfigurationClient } from './clients.ts';
import type { Configuration } from './configuration.ts';
import { logLevels, type RuntimeSettings } from './settings.ts';

export interface ConfigurationDeps extends Omit<CollectReportsDeps, 'peerClients'> {
  readonly configuration: Pick<Configuration, 'parse' | 'apply' | 'effective'>;
  readonly peerClients: ConfigurationClient;
}

const text = z.string();
const number = z.int();
const effectiveSchema = z.object({
  build: z.object({
    intervalMs: number.nullable().describe('longest wait for more transactions; null: as policies say'),
    maxTransactions: number.nullable().describe('of a docket that is proposed; null: as policies say'),
  }),
  mempool: z.object({ maxSize: number, maxBytes: number }),
  validation: z.object({ concurrency: number.describe('threads that verify signatures') }),
  rateLimit: z.object({ perMinute: number.nullable().describe('null where throughput is not limited') }),
  logLevel: z.enum([...logLevels, 'silent']),
});
const configurationSchema = z.object({
  effective: effectiveSchema.describe('at the validator that answers'),
  restartRequired: z.array(text),
  members: z.array(
    z.object({
      validatorId: text,
      reachable: z.boolean(),
      code: text.optional().describe('why it refused'),
    }),
  ),
});

/** `parsePatch` judges the names, so that each of them is refused with its own code. */
const patchSchema = z.looseObject({
  build: z.unknown().optional().describe('intervalMs, maxTransactions: numbers, or null as policies say'),
  mempool: z.unknown().optional().describe('maxSize, maxBytes of each register'),
  validation: z.unknown().optional().describe('concurrency: threads that verify signatures'),
  rateLimit: z.unknown().optional().describe('perMinute: requests of one caller'),
  logLevel: z.unknown().optional().describe(logLevels.join(', ')),
});

/**
 * `PUT /api/admin/config`: a JSON merge patch over the settings that may be changed at runtime. It applies at all
 * validators, or at the named one, at once and until their next start.
 */
export function mountConfiguration(app: App, deps: ConfigurationDeps): void {
  addRoute(app, {
    method: 'PUT',
    path: '/api/admin/config',
    operationId: 'updateValidatorConfiguration',
    tag: 'Administration',
    summary: 'Change the configuration of the validators that run',
    policy: 'RequireSystemAdmin',
    rateLimit: 'Api',
    query: z.object({
      validatorId: text.max(128).optional().describe('one validator; all when absent'),
    }),
    body: {
      schema: patchSchema,
      example: { build: { intervalMs: 50, maxTransactions: null }, logLevel: 'debug' },
    },
    answers: { 200: json('The settings in force.', configurationSchema) },
    refusals: refusals('POLICY_CONTROLLED', 'IMMUTABLE_FIELD', 'VALIDATOR_NOT_FOUND'),
    handle: async ({ query: { validatorId }, body: patch, request }) => {
      const members = await configureAll(deps, { patch, validatorId, subjectToken: bearerOf(request) });
      return { effective: presentSettings(deps.configuration.effective), restartRequired: [], members };
    },
  });
}

interface ConfigurationRequest {
  readonly patch: unknown;
  readonly validatorId: string | undefined;
  readonly subjectToken: string;
}

interface MemberResult {
  readonly validatorId: string;
  readonly reachable: boolean;
  /** Error code of the refusal. */
  readonly code?: string;
}

/** A patch that this validator refuses is sent to no other. The answer names the validators that refuse or cannot be reached. */
async function configureAll(deps: ConfigurationDeps, request: ConfigurationRequest): Promise<MemberResult[]> {
  const changes = deps.configuration.parse(request.patch);
  const known = await listValidators(deps);
  const chosen = request.validatorId === undefined ? known : known.filter((id) => id === request.validatorId);
  if (chosen.length === 0)
    throw failure('VALIDATOR_NOT_FOUND', { message: `${request.validatorId} is no validator here` });
  const patch = utf8(JSON.stringify(request.patch));
  return Promise.all(
    chosen.map(async (validatorId) => {
      if (validatorId !== deps.validatorId) return configureOther(deps, validatorId, { ...request, patch });
      deps.configuration.apply(changes);
      return { validatorId, reachable: true };
    }),
  );
}

async function configureOther(
  { peerClients }: ConfigurationDeps,
  validatorId: string,
  { patch, subjectToken }: { readonly patch: Uint8Array; readonly subjectToken: string },
): Promise<MemberResult> {
  try {
    await peerClients.configure(validatorId, { patch, subjectToken });
    return { validatorId, reachable: true };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const isUnreachable = error.kind === 'unavailable' || error.kind === 'timeout';
    return { validatorId, reachable: !isUnreachable, ...(!isUnreachable && { code: error.code }) };
  }
}

function presentSettings(settings: RuntimeSettings): z.output<typeof effectiveSchema> {
  return {
    build: {
      intervalMs: settings['build.intervalMs'],
      maxTransactions: settings['build.maxTransactions'],
    },
    mempool: { maxSize: settings['mempool.maxSize'], maxBytes: settings['mempool.maxBytes'] },
    validation: { concurrency: settings['validation.concurrency'] },
    rateLimit: { perMinute: settings['rateLimit.perMinute'] },
    logLevel: settings.logLevel as LogLevel,
  };
}
