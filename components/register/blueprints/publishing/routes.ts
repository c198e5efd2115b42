import { z } from 'zod';
import { execDefHash } from '#core/blueprint/hashes.ts';
import { MAX_PUBLISHER } from '#core/blueprint/members.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { findRosterEntry } from '#core/ledger/governance/rules.ts';
import type { RosterRole } from '#core/ledger/owner-attestation.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, callerOf, idempotencyHeaders, jsonAnswer } from '#kit/http/http.ts';
import { refusal } from '../../errors.ts';
import { isAccepted, sendAnswer } from '../../governance/control/answer.ts';
import { loadRules, type RulesDeps } from '../../governance/rules/load.ts';
import { getRegister, getWritableRegister } from '../../registers/state/access.ts';
import type { SeenRegister } from '../../registers/state/store.ts';
import { type PublishDeps, publishableDefinition, publishDefinition } from './publish.ts';

export interface BlueprintsDeps extends PublishDeps, RulesDeps {
  readonly database: PublishDeps['database'];
  readonly clock: PublishDeps['clock'];
  readonly idempotency: Idempotency;
}

const did = z
  .string()
  .min(1)
  .max(MAX_PUBLISHER)
  .regex(/^did:[^\p{Cc}\s]+$/u);

const publishBody = z
  .strictObject({
    blueprintId: z.string().min(1).max(64),
    blueprint: z.record(z.string(), z.unknown()).optional().describe('The definition.'),
    blueprintJson: z.string().optional().describe('The definition as JSON text.'),
    publishedBy: did.describe('DID of the publisher, as sealed.'),
    callerDid: did.describe('The member of the roster that the caller of this service acts as.'),
    execDefHash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional()
      .describe('Hash of the rehearsed definition; another one is refused.'),
  })
  .refine(({ blueprint, blueprintJson }) => (blueprint === undefined) !== (blueprintJson === undefined), {
    message: 'exactly one of blueprint and blueprintJson',
  });

/** Roles that may publish on a register. */
const publishers: readonly RosterRole[] = ['Owner', 'Admin', 'Designer'];

/** The member that the caller acts as must itself hold one of the roles. */
async function assertMayPublish(deps: BlueprintsDeps, register: SeenRegister, callerDid: string) {
  const rules = await loadRules(deps, register);
  const role = findRosterEntry(rules, callerDid)?.role;
  if (role === undefined || !publishers.includes(role)) throw refusal('PUBLISH_ROLE_REQUIRED');
}

function definitionIn({ blueprintId, blueprint, blueprintJson }: z.output<typeof publishBody>) {
  const value = blueprintJson === undefined ? blueprint : toValue(scanJson(blueprintJson));
  return publishableDefinition(blueprintId, value);
}

/** Mounts the publication of blueprints on a register, for services that have checked the caller's rights. */
export function mountBlueprints(app: App, deps: BlueprintsDeps): void {
  app.post(
    '/api/registers/:registerId/blueprints/publish',
    {
      config: { policy: 'RequireService', rateLimit: 'Strict' },
      schema: {
        operationId: 'publishBlueprint',
        tags: ['Blueprints'],
        summary: 'Publish a blueprint on a register',
        params: z.object({ registerId: z.string() }),
        body: publishBody,
        headers: idempotencyHeaders,
        response: jsonAnswer('The publication was submitted, or is already sealed.'),
      },
    },
    async (request, reply) => {
      const { body, headers } = request;
      const { registerId, height } = await getRegister(deps.database.read, request.params.registerId);
      if (height === 0) throw refusal('GOVERNANCE_ROSTER_NOT_SEALED', { retryAfterSeconds: 5 });
      const caller = callerOf(request);
      const register = await getWritableRegister(deps.database.read, caller, registerId);
      await assertMayPublish(deps, register, body.callerDid);
      const definition = definitionIn(body);
      if (body.execDefHash !== undefined && body.execDefHash !== execDefHash(definition))
        throw refusal('EXEC_DEF_HASH_MISMATCH');
      const scope = [`publish:${registerId}:${caller.subject}`];
      const answer = await deps.idempotency.once(
        { key: headers['idempotency-key'], scope, body },
        () => publishDefinition(deps, register, definition, body.publishedBy),
        isAccepted,
      );
      return sendAnswer(reply, answer);
    },
  );
}
