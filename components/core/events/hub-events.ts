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

/** JSON data of a definition or of the arguments of a tool. */
const jsonObject = z.record(z.string(), z.unknown());
const finding = z.object({
  severity: z.enum(['Error', 'Warning']),
  code: z.string(),
  message: z.string(),
  /** JSON Pointer into the definition. */
  location: z.string(),
});

/** Events of the chat hub, which have content (specification document 3, section 6). They answer one connection. */
export const CHAT_HUB_EVENTS = {
  /** Session, the definition that it starts from, and the number of messages that it has. */
  SessionStarted: z.tuple([z.uuid(), z.union([jsonObject, z.null()]), z.int().min(0)]),
  /** A part of the answer's text. */
  ReceiveChunk: z.tuple([z.string().min(1)]),
  /** Name and arguments of a tool that the language model uses. */
  ToolExecuting: z.tuple([z.string(), jsonObject]),
  /** Name of the tool, whether it succeeded, and else why not. */
  ToolExecuted: z.tuple([z.string(), z.boolean(), z.union([z.string(), z.null()])]),
  /** The answer changed the definition of the session, which is not stored yet. */
  BlueprintUpdated: z.tuple([
    jsonObject,
    z.object({
      isValid: z.boolean(),
      validationResults: z.array(finding),
      warnings: z.array(finding),
    }),
  ]),
  /** The message whose answer has ended or was cancelled. */
  MessageComplete: z.tuple([z.uuid()]),
  /** Code and text for a person; the answer has ended. */
  SessionError: z.tuple([z.string(), z.string()]),
  /** Number of messages that the session may still have. */
  MessageLimitWarning: z.tuple([z.int().min(0)]),
} as const;

export type ChatHubEvent = keyof typeof CHAT_HUB_EVENTS;
export type ChatHubArguments<E extends ChatHubEvent> = z.output<(typeof CHAT_HUB_EVENTS)[E]>;

export type BlueprintHubEvent = keyof typeof BLUEPRINT_HUB_EVENTS;
export type BlueprintHubArguments<E extends BlueprintHubEvent> = z.output<(typeof BLUEPRINT_HUB_EVENTS)[E]>;

export type TenantHubEvent = keyof typeof TENANT_HUB_EVENTS;
export type TenantHubArguments<E extends TenantHubEvent> = z.output<(typeof TENANT_HUB_EVENTS)[E]>;

export type RegisterHubEvent = keyof typeof REGISTER_HUB_EVENTS;
export type RegisterHubArguments<E extends RegisterHubEvent> = z.output<(typeof REGISTER_HUB_EVENTS)[E]>;
