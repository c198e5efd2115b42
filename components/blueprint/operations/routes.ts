import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, bearerOf, json, page, pageWindow, paging } from '#kit/http/http.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { refusal, refusals } from '../errors.ts';
import { creatorOf, type ListOwnWallets } from '../instances/view.ts';
import { type Operation, operationStatuses, progress, totalSteps } from './operation.ts';
import { findOperation, listOperations } from './store.ts';

export interface OperationRouteDeps {
  readonly db: Pick<Database<BlueprintDatabase>, 'read'>;
  readonly clock: Clock;
  readonly listOwn: ListOwnWallets;
}

const text = z.string();
const time = text.describe('ISO 8601, UTC.');
const route = { tag: 'Operations', policy: 'RequireAuthenticated', rateLimit: 'Api', noStore: true } as const;

const operationSchema = z
  .object({
    operationId: text,
    status: z.enum(operationStatuses),
    currentStep: z.int(),
    totalSteps: z.int(),
    stepName: text,
    percentComplete: z.int(),
    instanceId: text,
    transactionHash: text.nullable().describe('From the acceptance by a validator on.'),
    error: z.object({ code: text, message: text, step: z.int() }).nullable(),
    warnings: z.array(text),
    createdAt: time,
    completedAt: time.nullable(),
  })
  .meta({ id: 'WorkflowOperation' });

const operationListSchema = z
  .object({
    items: z.array(
      z.object({
        operationId: text,
        status: z.enum(operationStatuses),
        blueprintId: text,
        actionTitle: text,
        instanceId: text,
        walletAddress: text,
        recipientCount: z.int(),
        transactionHash: text.nullable(),
        errorMessage: text.nullable(),
        createdAt: time,
        completedAt: time.nullable(),
      }),
    ),
    page: z.int(),
    pageSize: z.int(),
    totalCount: z.int(),
    hasMore: z.boolean(),
  })
  .meta({ id: 'WorkflowOperations' });

const operationId = z.uuid().transform((id) => id.toLowerCase());
const listQuery = paging({ defaultSize: 10, maxSize: 50 }).extend({
  wallet: text.min(1).max(100).describe('Address of one of your wallets.'),
});

/** Mounts the reads of operations. */
export function mountOperationRoutes(app: App, deps: OperationRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/operations/:operationId',
    operationId: 'getOperation',
    summary: 'The progress of a step that you submitted',
    params: z.object({ operationId }),
    answers: { 200: json('The operation.', operationSchema) },
    refusals: refusals('OPERATION_NOT_FOUND', 'WALLETS_UNAVAILABLE'),
    handle: async ({ caller, params, request }) => {
      const found = await findOperation(deps.db.read, params.operationId);
      if (found === undefined) throw refusal('OPERATION_NOT_FOUND');
      const isOwn =
        found.owner === creatorOf(caller) || (await deps.listOwn(bearerOf(request))).includes(found.wallet);
      if (!isOwn) throw refusal('OPERATION_NOT_FOUND');
      return presentOperation(found);
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/operations',
    operationId: 'listOperations',
    summary: 'Steps that a wallet of yours submitted, newest first',
    query: listQuery,
    answers: { 200: json('A page of operations.', operationListSchema) },
    refusals: refusals('WALLET_NOT_OWNED', 'WALLETS_UNAVAILABLE'),
    handle: async ({ caller, query, request }) => {
      const { wallet } = query;
      if (caller.walletAddress !== undefined && caller.walletAddress !== wallet)
        throw refusal('WALLET_NOT_OWNED');
      if (!(await deps.listOwn(bearerOf(request))).includes(wallet)) throw refusal('WALLET_NOT_OWNED');
      const { items, total } = await listOperations(deps.db.read, wallet, pageWindow(query));
      const { totalPages: _, ...found } = page(items.map(presentItem), query, total);
      return { ...found, items: [...found.items] };
    },
  });
}

function presentOperation(operation: Operation): z.output<typeof operationSchema> {
  const { status, currentStep, failure } = operation;
  const steps = Object.values(progress);
  const stepName =
    status === 'Failed'
      ? steps.find((step) => step.currentStep === currentStep)?.stepName
      : progress[status].stepName;
  return {
    operationId: operation.id,
    status,
    currentStep,
    totalSteps,
    stepName: stepName ?? '',
    percentComplete: operation.percent,
    instanceId: operation.instanceId,
    transactionHash: hashOf(operation),
    error: failure === undefined ? null : { ...failure },
    warnings: [...operation.warnings],
    createdAt: operation.createdAt.toISOString(),
    completedAt: operation.completedAt?.toISOString() ?? null,
  };
}

function presentItem(operation: Operation) {
  return {
    operationId: operation.id,
    status: operation.status,
    blueprintId: operation.blueprintId,
    actionTitle: operation.actionTitle,
    instanceId: operation.instanceId,
    walletAddress: operation.wallet,
    recipientCount: operation.recipientCount,
    transactionHash: hashOf(operation),
    errorMessage: operation.failure?.message ?? null,
    createdAt: operation.createdAt.toISOString(),
    completedAt: operation.completedAt?.toISOString() ?? null,
  };
}

function hashOf({ isAccepted, txId }: Operation): string | null {
  return isAccepted ? (txId ?? null) : null;
}
