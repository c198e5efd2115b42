import type { z } from 'zod';
import { ledgerInstanceId } from '#core/blueprint/hashes.ts';
import type { Branch } from '#core/blueprint/steps/instance.ts';
import type { IndexedPublication } from '../definitions/publications/store.ts';
import type { PinnedDefinition } from './definitions.ts';
import { getAction } from './definitions.ts';
import { blockersOf, type Instance, openActions, walletsOf } from './instance.ts';
import type { actionDetailSchema, definitionSchema, instanceSchema, nextActionsSchema } from './schemas.ts';

/** The definition of an instance and its publication; both undefined when the pin does not resolve here. */
export interface Resolved {
  readonly pinned: PinnedDefinition | undefined;
  readonly publication: Pick<IndexedPublication, 'ordinal' | 'execDefHash'> | undefined;
}

type InstanceAnswer = z.output<typeof instanceSchema>;

export function presentInstance(
  instance: Instance,
  { pinned, publication }: Resolved,
  { nowMs, branches = [] }: { readonly nowMs: number; readonly branches?: readonly Branch[] },
): InstanceAnswer {
  const { start, routing, firstTxId } = instance;
  const wallets =
    pinned === undefined
      ? { ...(routing?.roles ?? start?.participantWallets) }
      : Object.fromEntries(walletsOf(instance, pinned.workflow));
  const current =
    pinned === undefined ? (routing?.current ?? []) : openActions(instance, pinned.workflow, nowMs);
  return {
    id: instance.instanceId,
    instanceId: instance.instanceId,
    ledgerInstanceId:
      firstTxId === undefined ? null : ledgerInstanceId(instance.registerId, instance.blueprintId, firstTxId),
    blueprintId: instance.blueprintId,
    blueprintDefinitionTxId: instance.pin,
    blueprintExecDefHash: publication?.execDefHash ?? null,
    blueprintVersion: publication?.ordinal ?? null,
    registerId: instance.registerId,
    state: instance.state,
    stateReason: instance.stateReason ?? null,
    currentActionIds: current.map(({ actionId }) => actionId),
    participantWallets: wallets,
    activeBranches: branches.filter(({ state }) => state === 'Active').map((branch) => ({ ...branch })),
    firstTransactionId: firstTxId ?? null,
    lastTransactionId: instance.lastTxId ?? null,
    completedActionCount: instance.completedCount,
    createdAt: instance.createdAt.toISOString(),
    updatedAt: instance.updatedAt.toISOString(),
    completedAt: instance.completedAt?.toISOString() ?? null,
    tenantId: start?.tenantId ?? 'default',
    metadata: { ...start?.metadata },
    instanceReference: null,
    version: routing === undefined ? 0 : routing.seq + 1,
  };
}

export function presentNextActions(
  instance: Instance,
  pinned: PinnedDefinition,
  nowMs: number,
): z.output<typeof nextActionsSchema> {
  return openActions(instance, pinned.workflow, nowMs).map(({ actionId, branchKey, until }) => {
    const { title, sender } = getAction(pinned, actionId);
    return {
      actionId,
      title,
      participantId: sender,
      ...(branchKey !== undefined && { branchKey }),
      ...(until !== undefined && { dueAt: new Date(until).toISOString() }),
      isBlockedBy: [...blockersOf(instance, pinned.workflow, actionId, nowMs)],
    };
  });
}

export function presentAction(
  instance: Instance,
  pinned: PinnedDefinition,
  actionId: number,
  nowMs: number,
): z.output<typeof actionDetailSchema> {
  const action = getAction(pinned, actionId);
  const isCurrent = openActions(instance, pinned.workflow, nowMs).some((each) => each.actionId === actionId);
  const { rejectionConfig } = action;
  return {
    instanceId: instance.instanceId,
    actionId,
    title: action.title,
    description: action.description ?? null,
    instructions: action.instructions ?? null,
    participantId: action.sender,
    isCurrent,
    isBlockedBy: isCurrent ? [...blockersOf(instance, pinned.workflow, actionId, nowMs)] : [],
    dataSchemas: [...(action.dataSchemas ?? [])],
    form: action.form ?? null,
    disclosures: [...(action.disclosures ?? [])],
    credentialRequirements: [...(action.credentialRequirements ?? [])],
    rejection: {
      allowed: rejectionConfig !== undefined,
      requireReason: rejectionConfig?.requireReason ?? rejectionConfig !== undefined,
      schema: rejectionConfig?.rejectionSchema ?? null,
    },
    calculationNames: Object.keys(action.calculations ?? {}),
    blueprintDefinitionTxId: instance.pin,
  };
}

export function presentDefinition(
  instance: Instance,
  publication: Pick<IndexedPublication, 'ordinal' | 'execDefHash'> | undefined,
  latest: { readonly publicationTxId: string } | undefined,
): z.output<typeof definitionSchema> {
  return {
    instanceId: instance.instanceId,
    blueprintId: instance.blueprintId,
    blueprintDefinitionTxId: instance.pin,
    blueprintExecDefHash: publication?.execDefHash ?? null,
    blueprintVersion: publication?.ordinal ?? null,
    isPinnedToLatest: publication === undefined ? null : latest?.publicationTxId === instance.pin,
    pinState: publication === undefined ? 'unresolvable' : 'pinned',
  };
}
