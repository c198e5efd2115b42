import { z } from 'zod';
import { canonicalJson } from '../../encoding/jcs.ts';
import {
  findTimestamp,
  formatLedgerTimestamp,
  TICKS_PER_SECOND,
  ticksToMicros,
} from '../../encoding/timestamp.ts';
import { AppError } from '../../errors/errors.ts';

/** Name of the metadata that makes an Action or a Rejection a step of an instance. */
export const ROUTING = 'routing';
/** Name of the metadata that holds the id of the instance. */
export const INSTANCE_ID = 'instanceId';
/** Maximum length of the text, UTF-16 code units. */
export const MAX_ROUTING_LENGTH = 4_096;
export const ROUTING_VERSION = 1;
/** Ticks of the first moment of the year 10000, which timestamps cannot write. */
const END_OF_TIME = 253_402_300_800n * TICKS_PER_SECOND;

interface NextAction {
  readonly actionId: number;
  readonly branchKey?: string | undefined;
}

/** An action that may be taken next. */
export interface CurrentAction extends NextAction {
  /** Ledger timestamp after which the action can no longer be taken. */
  readonly until?: string | undefined;
}

/**
 * What a step of an instance did and the state that it leaves, as its metadata tells it: canonical JSON of this object.
 * Together with the pinned definition it is all that judging the next step needs.
 */
export interface Routing {
  /** Version of the rules of workflows and of this object. */
  readonly v: typeof ROUTING_VERSION;
  /** UUID in lower case. */
  readonly instanceId: string;
  /** The pin: id of the publication, 64 hexadecimal characters. All steps of an instance have the same. */
  readonly blueprintDefinitionTxId: string;
  /** 0 for the first step of an instance, then one more for each. */
  readonly seq: number;
  /** The action that was taken or, for a rejection, the one that was rejected. */
  readonly completedActionId: number;
  /** The route that was taken; absent for a rejection, and for an action without routes. */
  readonly routeId?: string | undefined;
  /** The actions that the step activates, ascending by action. */
  readonly nextActions: readonly NextAction[];
  readonly isRejection?: true | undefined;
  /** A reason of the route's decision notice. */
  readonly reasonCode?: string | undefined;
  /** All actions that may be taken next, ascending by action, each once. */
  readonly current: readonly CurrentAction[];
  /** Wallet addresses of the open participants that are bound so far, by participant. */
  readonly roles: Readonly<Record<string, string>>;
  readonly ended?: 'Completed' | 'Rejected' | undefined;
}

const actionId = z.int().min(0);
const branchKey = z.string().min(1).optional();

/** Ledger timestamp of a deadline, whole microseconds; undefined before 1970 and after 9999. */
export function deadlineText(ticks: bigint): string | undefined {
  return ticks >= 0n && ticks < END_OF_TIME ? formatLedgerTimestamp(ticksToMicros(ticks)) : undefined;
}

/** Whether a text has the form of a wallet address. The checksum is not verified: no key has a wrong one. */
export function isAddressForm(value: unknown): value is string {
  return typeof value === 'string' && /^w1[02-9ac-hj-np-z]{59}$/.test(value);
}

/** Whether a text is a timestamp of a deadline in the form that the ledger writes. */
function isDeadline(text: string): boolean {
  const ticks = findTimestamp(text);
  return ticks !== undefined && deadlineText(ticks) === text;
}

/** Whether a text is the id of an instance: a UUID in lower case. */
export function isInstanceId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}

function isRoles(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every(isAddressForm);
}

function isAscending(items: readonly { readonly actionId: number }[]): boolean {
  return items.every((item, index) => index === 0 || (items[index - 1]?.actionId ?? 0) < item.actionId);
}

const shape = z.strictObject({
  v: z.literal(ROUTING_VERSION),
  instanceId: z.string().refine(isInstanceId),
  blueprintDefinitionTxId: z.string().regex(/^[0-9a-f]{64}$/),
  seq: z.int().min(0),
  completedActionId: actionId,
  routeId: z.string().optional(),
  nextActions: z.array(z.strictObject({ actionId, branchKey })).refine(isAscending),
  isRejection: z.literal(true).optional(),
  reasonCode: z.string().optional(),
  current: z
    .array(z.strictObject({ actionId, branchKey, until: z.string().refine(isDeadline).optional() }))
    .refine(isAscending),
  roles: z.custom<Routing['roles']>(isRoles),
  ended: z.enum(['Completed', 'Rejected']).optional(),
});

function isRouting(value: unknown): value is Routing {
  return shape.safeParse(value).success;
}

function findJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a text is the canonical JSON of a value that came from JSON. */
function isCanonical(value: unknown, text: string): boolean {
  return text.isWellFormed() && canonicalJson(value) === text;
}

/**
 * Parses the text of a routing; undefined when it is too long, not canonical JSON, or has not the shape. Whether it
 * follows from a definition is not judged.
 */
export function parseRouting(text: string): Routing | undefined {
  if (text.length > MAX_ROUTING_LENGTH) return undefined;
  const value = findJson(text);
  // The parsed input is returned, not zod's copy, which would drop participants that are named __proto__.
  return isRouting(value) && isCanonical(value, text) ? value : undefined;
}

/** The text of the routing in metadata; undefined when there is none. */
export function routingText(metadata: Readonly<Record<string, string>> | undefined): string | undefined {
  return metadata !== undefined && Object.hasOwn(metadata, ROUTING) ? metadata[ROUTING] : undefined;
}

/** Finds the routing in metadata: undefined when there is none, `malformed` when it cannot be parsed. */
export function findRouting(
  metadata: Readonly<Record<string, string>> | undefined,
): Routing | 'malformed' | undefined {
  const text = routingText(metadata);
  return text === undefined ? undefined : (parseRouting(text) ?? 'malformed');
}

/**
 * The text of a routing, as metadata holds it.
 * @throws AppError unprocessable ROUTING_TOO_LARGE above MAX_ROUTING_LENGTH
 */
export function encodeRouting(routing: Routing): string {
  const text = canonicalJson(routing);
  if (text.length <= MAX_ROUTING_LENGTH) return text;
  const message = `The state of the instance needs ${text.length} characters; a step can hold ${MAX_ROUTING_LENGTH}`;
  throw new AppError('unprocessable', 'ROUTING_TOO_LARGE', message);
}
