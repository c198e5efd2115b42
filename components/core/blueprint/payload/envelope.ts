import { z } from 'zod';
import { sha256Hex } from '../../crypto/hash.ts';
import { encodeBase64Url, isBase64Url } from '../../encoding/base64.ts';
import { canonicalBytes } from '../../encoding/jcs.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '../../encoding/json.ts';
import { equalBytes, utf8 } from '../../encoding/text.ts';
import { isAppError } from '../../errors/errors.ts';

/** `contentEncoding` of a payload whose groups are encrypted. */
const GROUPS_ENCODING = 'jwe-groups';
/** `contentEncoding` of a payload in clear, on a register of development. */
const CLEAR_ENCODING = 'identity';
/** `typ` of the protected header of a group. */
const GROUP_TYPE = 'disclosure-group+jwe';
const GROUP_CIPHER = 'A256GCM';
/** Protected header of the groups that this product makes. */
export const GROUP_HEADER = { enc: GROUP_CIPHER, typ: GROUP_TYPE } as const;
/** Bounds of an envelope. */
export const ENVELOPE_LIMITS = { groups: 16, recipients: 64 } as const;

/** One spelling of the same bytes: text with stray bits is refused. */
const base64Url = z.string().refine(isBase64Url, { error: 'expected base64url without padding' });

const recipientSchema = z.object({
  header: z.looseObject({ alg: z.string(), kid: z.string() }),
  encrypted_key: base64Url,
});

const groupSchema = z.object({
  groupId: z.string().min(1).max(64),
  commitment: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  jwe: z.object({
    protected: base64Url,
    recipients: z.array(recipientSchema).min(1).max(ENVELOPE_LIMITS.recipients),
    iv: base64Url,
    ciphertext: base64Url,
    tag: base64Url,
    aad: base64Url,
  }),
});

const envelopeSchema = z.object({
  v: z.literal(1),
  type: z.string(),
  contentEncoding: z.literal(GROUPS_ENCODING),
  blueprintId: z.string(),
  actionId: z.string(),
  instanceId: z.string(),
  blueprintDefinitionTxId: z.string().optional(),
  groups: z.array(groupSchema).max(ENVELOPE_LIMITS.groups),
});

/** The payload of an action whose data is encrypted in groups, one for each set of recipients. */
export type Envelope = z.output<typeof envelopeSchema>;
/** One encrypted group: a JWE in the JSON serialisation (RFC 7516, section 7.2). */
export type DisclosureGroup = z.output<typeof groupSchema>;
/** One recipient of a group, named by `kid`: a wallet address, or `{address}#{context}`. */
export type GroupRecipient = z.output<typeof recipientSchema>;

const clearSchema = z.object({
  v: z.literal(1),
  type: z.string(),
  contentEncoding: z.literal(CLEAR_ENCODING),
  blueprintId: z.string(),
  actionId: z.string(),
  instanceId: z.string(),
  blueprintDefinitionTxId: z.string().optional(),
  data: z.custom<JsonObject>(isJsonObject),
});

/** What a payload belongs to, and its kind. */
export interface PayloadOwner {
  readonly type: 'action' | 'rejection';
  readonly blueprintId: string;
  readonly actionId: string;
  readonly instanceId: string;
  readonly blueprintDefinitionTxId: string;
}

/** The payload of a register of development: all processed data in clear, which is filtered when it is read. */
export type ClearPayload = z.output<typeof clearSchema>;

/** A payload whose groups are encrypted. */
export function groupsPayload(owner: PayloadOwner, groups: readonly DisclosureGroup[]): Envelope {
  return { v: 1, ...owner, contentEncoding: GROUPS_ENCODING, groups: [...groups] };
}

/** A payload in clear. */
export function clearPayload(owner: PayloadOwner, data: JsonObject): ClearPayload {
  return { v: 1, ...owner, contentEncoding: CLEAR_ENCODING, data };
}

/** The payload in clear that bytes hold; undefined for any other payload. */
export function findClearPayload(payload: Uint8Array): ClearPayload | undefined {
  return clearSchema.safeParse(findJson(payload)).data;
}

/** The envelope in the bytes of a payload; undefined for any other payload. */
export function findEnvelope(payload: Uint8Array): Envelope | undefined {
  return envelopeSchema.safeParse(findJson(payload)).data;
}

/** The recipient with a key id. */
export function findRecipient({ jwe }: DisclosureGroup, keyId: string): GroupRecipient | undefined {
  return jwe.recipients.find(({ header }) => header.kid === keyId);
}

/**
 * Additional data of a group, base64url: the register, instance, action and group that it belongs to, so that a group
 * which is copied elsewhere cannot be opened there.
 */
export function groupAad(
  registerId: string,
  { instanceId, actionId }: Pick<Envelope, 'instanceId' | 'actionId'>,
  groupId: string,
): string {
  return encodeBase64Url(utf8([registerId, instanceId, actionId, groupId].join('|')));
}

/** Whether a protected header is that of a group. */
export function isGroupHeader(header: JsonObject): boolean {
  return header['enc'] === GROUP_CIPHER && header['typ'] === GROUP_TYPE;
}

/** The commitment to the plaintext of a group: its SHA-256. The salt inside keeps its data from being guessed. */
export function commitmentOf(plaintext: Uint8Array): string {
  return `sha256:${sha256Hex(plaintext)}`;
}

/**
 * The data in the plaintext of a group: the disclosed fields. Undefined when the plaintext does not fit the group's
 * commitment, or is no group's.
 */
export function findGroupData(
  { commitment }: Pick<DisclosureGroup, 'commitment'>,
  plaintext: Uint8Array,
): JsonObject | undefined {
  if (commitmentOf(plaintext) !== commitment) return undefined;
  const value = findJson(plaintext);
  const data = isJsonObject(value) ? value['data'] : undefined;
  return isJsonObject(data) ? data : undefined;
}

const groupTextSchema = z.strictObject({
  salt: base64Url,
  fields: z.array(z.string()),
  data: z.custom<JsonObject>(isJsonObject),
});

/** The plaintext of a group, as one of its recipients shows it to others. */
export type GroupText = z.output<typeof groupTextSchema>;

/**
 * The text in the plaintext of a group. Undefined when it has other members, or is not their canonical JSON: the
 * commitment is then to bytes that the text does not give again.
 */
export function findGroupText(plaintext: Uint8Array): GroupText | undefined {
  const text = groupTextSchema.safeParse(findJson(plaintext)).data;
  return text !== undefined && equalBytes(canonicalBytes(text), plaintext) ? text : undefined;
}

/** The value of JSON text whose names are unique; undefined for any other bytes. */
export function findJson(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
