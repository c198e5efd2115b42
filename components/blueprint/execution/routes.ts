import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type App, addRoute, bearerOf, json } from '#kit/http/http.ts';
import { refusal, refusals } from '../errors.ts';
import type { TriedAction } from '../evaluation/action.ts';
import type { Answered, Question } from '../evaluation/tasks.ts';
import { registerIdSchema, txIdSchema } from '../identifiers.ts';
import { delegationHeaders, delegationIn } from '../instances/authority.ts';
import { answerAbout, type HelperDeps } from './definitions.ts';
import { answerInInstance } from './in-instance.ts';

export type { HelperDeps } from './definitions.ts';

const text = z.string();
const data = z.record(z.string(), z.unknown());
const actionId = z
  .union([z.int().min(0), z.string().regex(/^(?:0|[1-9][0-9]{0,8})$/, 'a number from 0')])
  .transform(Number)
  .describe('Number of the action, as a number or a text.');

const questionBody = z.strictObject({
  blueprintId: z.string().min(1).max(64),
  actionId,
  data,
  registerId: registerIdSchema.optional(),
  publicationTxId: txIdSchema.optional().describe('The latest publication when absent.'),
  draft: z.boolean().optional().describe('Asks about a draft of your organisation.'),
  instanceId: z
    .uuid()
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('Asks about an action of this instance, over the data that you read of it.'),
});

const example = { blueprintId: 'invoice-approval', actionId: '0', data: { amount: 12 } };

const validated = z
  .object({
    isValid: z.boolean(),
    errors: z.array(
      z.object({
        path: text.describe('JSON Pointer into the data.'),
        message: text,
        schemaLocation: text,
        keyword: text,
      }),
    ),
  })
  .meta({ id: 'PayloadJudgement' });

const calculated = z
  .object({ processedData: data, calculatedFields: z.array(text).describe('Names of the calculations.') })
  .meta({ id: 'CalculatedPayload' });

const routed = z
  .object({
    nextActionId: text.nullable(),
    nextParticipantId: text.nullable(),
    isWorkflowComplete: z.boolean().describe('Whether nothing follows, and no other action is current.'),
    matchedCondition: text.nullable().describe('JSON Logic of the route; null for the default.'),
    routeId: text.nullable(),
    nextActions: z.array(z.object({ actionId: text, participantId: text, branchKey: text.optional() })),
  })
  .meta({ id: 'RoutedPayload' });

const disclosed = z
  .object({
    disclosures: z.array(z.object({ participantId: text, disclosedData: data, fieldCount: z.int() })),
  })
  .meta({ id: 'DisclosedPayload' });

const route = {
  method: 'POST',
  tag: 'Execution helpers',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
  body: { schema: questionBody, example },
  headers: delegationHeaders,
  noStore: true,
  refusals: refusals(
    'BLUEPRINT_NOT_FOUND',
    'PUBLICATION_NOT_FOUND',
    'ACTION_NOT_FOUND',
    'ORGANIZATION_REQUIRED',
    'REGISTER_UNAVAILABLE',
    'DRAFT_TOO_COMPLEX',
    'DRAFT_JUDGING_BUSY',
    'DEFINITION_UNUSABLE',
    'SCHEMA_REFUSED',
    'LOGIC_REFUSED',
    'LOGIC_NO_TEXT',
    'LOGIC_BUDGET_EXCEEDED',
    'CALC_CYCLE',
    'CALC_NOT_FINITE',
    'NO_ROUTE',
    'INSTANCE_NOT_FOUND',
    'INSTANCE_ACCESS_DENIED',
    'PIN_UNRESOLVABLE',
    'STATE_INCOMPLETE',
    'WALLETS_UNAVAILABLE',
    'DELEGATION_INVALID',
  ),
} as const;

interface HelperRequest {
  readonly caller: Caller;
  readonly body: z.output<typeof questionBody>;
  readonly request: Parameters<typeof bearerOf>[0];
}

interface HelperAnswer {
  readonly answered: ReturnType<typeof assertAnswered>;
  /** Other actions of the instance that was asked about are current. */
  readonly areOthersCurrent: boolean;
}

async function ask(
  deps: HelperDeps,
  { caller, body, request }: HelperRequest,
  wanted: Question['ask'],
): Promise<HelperAnswer> {
  const { instanceId, ...named } = body;
  const question = { actionId: body.actionId, data: body.data, ask: wanted };
  const subject = { caller, bearer: bearerOf(request) };
  if (instanceId === undefined) {
    const answered = assertAnswered(await answerAbout(deps, subject, named, question));
    return { answered, areOthersCurrent: false };
  }
  const given = delegationIn(request.headers);
  const about = await answerInInstance(deps, subject, { ...named, instanceId }, { question, given });
  return { ...about, answered: assertAnswered(about.answered) };
}

function assertAnswered(answered: Answered): Extract<Answered, { kind: 'errors' | 'tried' }> {
  switch (answered.kind) {
    case 'noDefinition':
      throw refusal('DEFINITION_UNUSABLE');
    case 'noAction':
      throw refusal('ACTION_NOT_FOUND');
    case 'refused':
      throw new AppError('unprocessable', answered.code, answered.message);
    default:
      return answered;
  }
}

async function tryOut(
  deps: HelperDeps,
  input: HelperRequest,
): Promise<TriedAction & Pick<HelperAnswer, 'areOthersCurrent'>> {
  const { answered, areOthersCurrent } = await ask(deps, input, 'try');
  if (answered.kind !== 'tried') throw new RangeError('the answer is to another question');
  return { ...answered.tried, areOthersCurrent };
}

/** Mounts the helpers, which show what an action would make of data. They write nothing. */
export function mountHelperRoutes(app: App, deps: HelperDeps): void {
  addRoute(app, {
    ...route,
    path: '/api/execution/validate',
    operationId: 'validatePayload',
    summary: 'Whether data matches the schemas of the action',
    answers: { 200: json('The judgement.', validated) },
    handle: async (input) => {
      const { answered } = await ask(deps, input, 'validate');
      const errors = answered.kind === 'errors' ? answered.errors : [];
      return { isValid: errors.length === 0, errors };
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/execution/calculate',
    operationId: 'executeCalculations',
    summary: 'What the calculations of the action add to data',
    answers: { 200: json('The data with the calculations.', calculated) },
    handle: async (input) => {
      const { processed, calculations } = await tryOut(deps, input);
      return { processedData: processed, calculatedFields: Object.keys(calculations) };
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/execution/route',
    operationId: 'resolveRoute',
    summary: 'Which route the action takes with data',
    answers: { 200: json('The route.', routed) },
    handle: async (input) => {
      const { nextActions, matchedCondition, routeId = null, areOthersCurrent } = await tryOut(deps, input);
      const shown = nextActions.map((next) => ({ ...next, actionId: String(next.actionId) }));
      const [first] = shown;
      return {
        nextActionId: first?.actionId ?? null,
        nextParticipantId: first?.participantId ?? null,
        isWorkflowComplete: first === undefined && !areOthersCurrent,
        matchedCondition,
        routeId,
        nextActions: shown,
      };
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/execution/disclose',
    operationId: 'resolveDisclosures',
    summary: 'What each participant reads of data',
    answers: { 200: json('The views.', disclosed) },
    handle: async (input) => {
      const { disclosures } = await tryOut(deps, input);
      return {
        disclosures: disclosures.map(({ participantId, data: disclosedData, fieldCount }) => ({
          participantId,
          disclosedData,
          fieldCount,
        })),
      };
    },
  });
}
