import { z } from 'zod';
import { type App, addRoute, bearerOf, json, page, pageSchema, pageWindow, paging } from '#kit/http/http.ts';
import { listLatestPublications } from '../definitions/publications/store.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal, refusals } from '../errors.ts';
import { registerIdSchema, txIdSchema } from '../identifiers.ts';
import { viewSteps } from '../instances/accumulated-state.ts';
import { delegationHeaders, delegationIn, delegationOf } from '../instances/authority.ts';
import { blockersOf, hasOpenStart, type Instance, openActions, walletsOf } from '../instances/instance.ts';
import { presentAction } from '../instances/present.ts';
import { actionDetailSchema } from '../instances/schemas.ts';
import { findInstance, findStepInstance, listActive, listSteps } from '../instances/store.ts';
import type { ActionRouteDeps } from './routes.ts';

const route = { tag: 'Actions', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
const text = z.string();
const wallet = text.min(1).max(100).describe('Address of one of your wallets.');

const startableSchema = z
  .object({
    walletAddress: text,
    registerAddress: text,
    blueprints: z.array(
      z.object({
        blueprintId: text,
        title: text,
        version: z.int(),
        availableActions: z.array(z.object({ actionId: z.int(), title: text, isAvailable: z.boolean() })),
      }),
    ),
  })
  .meta({ id: 'WalletBlueprints' });

const stepSchema = z
  .object({
    transactionHash: text,
    blueprintId: text,
    actionId: text,
    instanceId: text,
    senderWallet: text,
    registerAddress: text,
    payloadData: z.record(text, z.unknown()).nullable().describe('What you may read of it.'),
    timestamp: text.describe('ISO 8601, UTC; of the docket.'),
  })
  .meta({ id: 'WalletAction' });

const access = refusals('WALLET_NOT_OWNED', 'WALLETS_UNAVAILABLE', 'INSTANCES_REBUILDING');

/** Mounts what a wallet reads of the actions of a register. */
export function mountActionReads(app: App, deps: ActionRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/actions/:wallet/:register',
    operationId: 'listWalletActions',
    summary: 'Actions of a register that a wallet of yours can take now',
    params: z.object({ wallet, register: registerIdSchema }),
    query: paging(),
    answers: { 200: json('A page of actions.', pageSchema(actionDetailSchema)) },
    refusals: access,
    handle: async ({ params, query, request }) => {
      await assertOwn(deps, bearerOf(request), params.wallet);
      const turns = await listTurns(deps, params.register, params.wallet);
      const { offset, limit } = pageWindow(query);
      const nowMs = deps.clock.nowMs();
      const items = await Promise.all(
        turns.slice(offset, offset + limit).map(async ({ instance, actionId }) => {
          const pinned = await deps.definitions.get(instance.registerId, instance.pin);
          return presentAction(instance, pinned, actionId, nowMs);
        }),
      );
      const found = page(items, query, turns.length);
      return { ...found, items: [...found.items] };
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/actions/:wallet/:register/blueprints',
    operationId: 'listWalletBlueprints',
    summary: 'Blueprints of a register with the actions of a wallet of yours',
    params: z.object({ wallet, register: registerIdSchema }),
    description:
      'Of a register that your organisation may not read: the blueprints that name the wallet, and those that any wallet ' +
      'may start.',
    answers: { 200: json('The latest publication of each blueprint.', startableSchema) },
    refusals: [...access, ...refusals('REGISTER_UNAVAILABLE')],
    handle: async ({ caller, params, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      await assertOwn(deps, subject.bearer, params.wallet);
      const isReader = await deps.canRead(subject, params.register);
      const { wallet: walletAddress, register: registerAddress } = params;
      const blueprints = await listBlueprints(deps, { ...params, isReader });
      return { walletAddress, registerAddress, blueprints };
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/actions/:wallet/:register/:transactionHash',
    operationId: 'getWalletAction',
    summary: 'A sealed action, as a wallet of yours reads it',
    params: z.object({ wallet, register: registerIdSchema, transactionHash: txIdSchema }),
    headers: delegationHeaders,
    noStore: true,
    answers: { 200: json('The action.', stepSchema) },
    refusals: [
      ...access,
      ...refusals('INSTANCE_NOT_FOUND', 'PIN_UNRESOLVABLE', 'REGISTER_UNAVAILABLE', 'DELEGATION_INVALID'),
    ],
    handle: async ({ caller, params, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      await assertOwn(deps, subject.bearer, params.wallet);
      return readStep(deps, subject, params, delegationIn(request.headers));
    },
  });
}

async function assertOwn(deps: ActionRouteDeps, bearer: string, address: string): Promise<void> {
  if (!(await deps.listOwn(bearer)).includes(address)) throw refusal('WALLET_NOT_OWNED');
}

interface Turn {
  readonly instance: Instance;
  readonly actionId: number;
}

/** Current actions that a wallet takes and that wait for nothing, in the order of their instances. */
async function listTurns(deps: ActionRouteDeps, registerId: string, address: string): Promise<Turn[]> {
  const nowMs = deps.clock.nowMs();
  const turns: Turn[] = [];
  for (const instance of await listActive(deps.db.read, { registerId, wallet: address }, new Date(nowMs))) {
    const pinned = await deps.definitions.find(registerId, instance.pin);
    if (pinned === undefined) continue;
    const { workflow } = pinned;
    const roles = walletsOf(instance, workflow);
    for (const { actionId } of openActions(instance, workflow, nowMs)) {
      const sender = workflow.actions.get(actionId)?.sender;
      const isOwn = sender !== undefined && roles.get(sender) === address;
      if (isOwn && blockersOf(instance, workflow, actionId, nowMs).length === 0)
        turns.push({ instance, actionId });
    }
  }
  return turns;
}

interface Looking {
  readonly wallet: string;
  readonly register: string;
  /** The caller may read the register. */
  readonly isReader: boolean;
}

/** The latest publications that a wallet has to do with, or all of them for a reader of the register. */
async function listBlueprints(
  deps: ActionRouteDeps,
  { wallet: address, register: registerId, isReader }: Looking,
): Promise<z.output<typeof startableSchema>['blueprints']> {
  const turns = await listTurns(deps, registerId, address);
  const publications = await listLatestPublications(deps.db.read, registerId);
  const found = await Promise.all(
    publications.map(async ({ publicationTxId, blueprintId, ordinal }) => {
      const pinned = await deps.definitions.find(registerId, publicationTxId);
      if (pinned === undefined) return [];
      const { workflow, blueprint } = pinned;
      const isNamed = [...workflow.participants.values()].includes(address);
      if (!isReader && !isNamed && !hasOpenStart(workflow)) return [];
      const availableActions = blueprint.actions.flatMap(({ id, title, sender, isStartingAction }) => {
        const closed = workflow.participants.get(sender);
        if (closed !== undefined && closed !== address) return [];
        const isCurrent = turns.some(
          ({ instance, actionId }) => actionId === id && instance.blueprintId === blueprintId,
        );
        return [{ actionId: id, title, isAvailable: isStartingAction === true || isCurrent }];
      });
      return [{ blueprintId, title: blueprint.title, version: ordinal, availableActions }];
    }),
  );
  return found.flat();
}

interface StepParams {
  readonly wallet: string;
  readonly register: string;
  readonly transactionHash: string;
}

/** A step of an instance that the wallet takes part in; any other one is not found. */
async function readStep(
  deps: ActionRouteDeps,
  subject: Subject,
  { wallet: address, register: registerId, transactionHash: txId }: StepParams,
  given: string | undefined,
): Promise<z.output<typeof stepSchema>> {
  const found = await findStepInstance(deps.db.read, registerId, txId);
  if (found === undefined) throw refusal('INSTANCE_NOT_FOUND');
  const { instanceId } = found;
  const instance = await findInstance(deps.db.read, registerId, instanceId, new Date(deps.clock.nowMs()));
  if (instance === undefined) throw refusal('INSTANCE_NOT_FOUND');
  const pinned = await deps.definitions.get(registerId, instance.pin);
  const roles = [...walletsOf(instance, pinned.workflow).values()];
  const steps = await listSteps(deps.db.read, registerId, instanceId);
  const step = steps.find((each) => each.txId === txId);
  if (step === undefined || !roles.includes(address)) throw refusal('INSTANCE_NOT_FOUND');
  const authority = async () => (await delegationOf(deps, subject, given)).token;
  const [view] = await viewSteps(deps, { instance, pinned }, [step], { wallets: [address], authority });
  return {
    transactionHash: txId,
    blueprintId: instance.blueprintId,
    actionId: String(step.actionId),
    instanceId,
    senderWallet: step.sender,
    registerAddress: registerId,
    payloadData: view?.data ?? null,
    timestamp: step.sealedAt.toISOString(),
  };
}
