import { z } from 'zod';

const registerId = z.string().regex(/^[0-9a-f]{32}$/);
const txId = z.string().regex(/^[0-9a-f]{64}$/);
const docketNumber = z.int().min(0);
/** Start of the transaction that led to the event; a client that was away asks for what happened since. */
const occurredAt = z.iso.datetime();
/** W3C trace id; empty when nothing was traced. */
const traceId = z.string().regex(/^(?:[0-9a-f]{32})?$/);

const ofRegister = z.tuple([registerId, occurredAt, traceId]);
const ofDocket = z.tuple([registerId, docketNumber, occurredAt, traceId]);

/** Events of the register hub: arguments by position (specification document 3, section 6). */
export const REGISTER_HUB_EVENTS = {
  RegisterCreated: ofRegister,
  RegisterDeleted: ofRegister,
  TransactionConfirmed: z.tuple([registerId, txId, occurredAt, traceId]),
  DocketSealed: ofDocket,
  DocketConfirmed: ofDocket,
  /** The docket is the last one of the register. */
  RegisterHeightUpdated: ofDocket,
} as const;

/** Events of the tenant hub (specification document 1, section 6). */
export const TENANT_HUB_EVENTS = {
  InboxEntryAdded: z.tuple([z.uuid(), occurredAt, traceId]),
  InboxUnreadCountUpdated: z.tuple([z.int().min(0), occurredAt, traceId]),
} as const;

const instanceId = z.uuid();
/** Decimal text, as the REST paths have it. */
const actionId = z.string().regex(/^(?:0|[1-9][0-9]{0,15})$/);
const ofAction = z.tuple([instanceId, actionId, occurredAt, traceId]);
const ofInstance = z.tuple([instanceId, occurredAt, traceId]);
const ofOperation = z.tuple([z.uuid(), occurredAt, traceId]);

/** Events of the blueprint hub (specification document 3, section 6). */
export const BLUEPRINT_HUB_EVENTS = {
  /** To the wallet that can take the action. */
  ActionAvailable: ofAction,
  ActionConfirmed: ofAction,
  ActionRejected: ofAction,
  InstanceAdvanced: ofInstance,
  WorkflowCompleted: ofInstance,
  EncryptionProgress: ofOperation,
  EncryptionComplete: ofOperation,
  EncryptionFailed: ofOperation,
} as const;

const ofCredential = z.tuple([z.string().min(1).max(200), occurredAt, traceId]);

/** Events of the wallet hub (specification documents 1 and 3, section 6). */
export const WALLET_HUB_EVENTS = {
  /** To the devices of a person: the wallet app on the named one locks itself. */
  DeviceRevoked: z.tuple([z.guid()]),
  CredentialAvailable: ofCredential,
  CredentialStatusChanged: ofCredential,
} as const;

export type WalletHubEvent = keyof typeof WALLET_HUB_EVENTS;
export type WalletHubArguments<E extends WalletHubEvent> = z.output<(typeof WALLET_HUB_EVENTS)[E]>;

export type BlueprintHubEvent = keyof typeof BLUEPRINT_HUB_EVENTS;
export type BlueprintHubArguments<E extends BlueprintHubEvent> = z.output<(typeof BLUEPRINT_HUB_EVENTS)[E]>;

export type TenantHubEvent = keyof typeof TENANT_HUB_EVENTS;
export type TenantHubArguments<E extends TenantHubEvent> = z.output<(typeof TENANT_HUB_EVENTS)[E]>;

export type RegisterHubEvent = keyof typeof REGISTER_HUB_EVENTS;
export type RegisterHubArguments<E extends RegisterHubEvent> = z.output<(typeof REGISTER_HUB_EVENTS)[E]>;
