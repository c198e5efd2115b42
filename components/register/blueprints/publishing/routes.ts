import { z } from 'zod';
import { execDefHash } from '#core/blueprint/hashes.ts';
import { MAX_PUBLISHER } from '#core/blueprint/members.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import type { Caller } from '#core/identity/claims.ts';
import { findRosterEntry } from '#core/ledger/governance/rules.ts';
import type { RosterRole } from '#core/ledger/owner-attestation.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { ofSubmission, ofWritableRegister, refusal, refusals } from '../../errors.ts';
import { loadRules, type RulesDeps } from '../../governance/rules/load.ts';
import { getRegister, getWritableRegister } from '../../registers/state/access.ts';
import type { SeenRegister } from '../../registers/state/store.ts';
import { type PublishDeps, publishableDefinition, publishDefinition } from './publish.ts';
import { definitionExample, publicationSchema } from './schemas.ts';

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

const exampleDid = 'did:platform:w:w1quj8qvh6u2mlj6fnjx0953fsvlkhcepkg4j9d5f5zfvtnume7ap4q47gykc';

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

/** The register and the definition to publish on it, if the caller may publish there. */
async function getPublishable(
  deps: BlueprintsDeps,
  caller: Caller,
  registerId: string,
  body: z.output<typeof publishBody>,
) {
  const { read } = deps.database;
  const known = await getRegister(read, registerId);
  if (known.height === 0) throw refusal('GOVERNANCE_ROSTER_NOT_SEALED', { retryAfterSeconds: 5 });
  const register = await getWritableRegister(read, caller, known.registerId);
  await assertMayPublish(deps, register, body.callerDid);
  const definition = definitionIn(body);
  if (body.execDefHash !== undefined && body.execDefHash !== execDefHash(definition))
    throw refusal('EXEC_DEF_HASH_MISMATCH');
  return { register, definition };
}

/** Mounts the publication of blueprints on a register, for services that have checked the caller's rights. */
export function mountBlueprints(app: App, deps: BlueprintsDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/registers/:registerId/blueprints/publish',
    operationId: 'publishBlueprint',
    tag: 'Blueprints',
    summary: 'Publish a blueprint on a register',
    policy: 'RequireService',
    rateLimit: 'Strict',
    params: z.object({ registerId: z.string() }),
    body: {
      schema: publishBody,
      example: {
        blueprintId: definitionExample.id,
        blueprint: definitionExample,
        publishedBy: exampleDid,
        callerDid: exampleDid,
      },
    },
    resource: ({ caller, params, body }) => getPublishable(deps, caller, params.registerId, body),
    idempotency: deps.idempotency,
    answers: { 200: json('The publication was submitted, or is already sealed.', publicationSchema) },
    refusals: [
      ...ofWritableRegister,
      ...refusals('GOVERNANCE_ROSTER_NOT_SEALED', 'PUBLISH_ROLE_REQUIRED', 'EXEC_DEF_HASH_MISMATCH'),
      ...refusals('TRANSACTION_TOO_LARGE'),
      ...ofSubmission,
    ],
    handle: ({ body, resource: { register, definition } }) =>
      publishDefinition(deps, register, definition, body.publishedBy),
  });
}
