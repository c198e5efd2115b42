import { z } from 'zod';
import { sha256Hex } from '../../crypto/hash.ts';
import { encodeBase64Url } from '../../encoding/base64.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '../../encoding/json.ts';
import { utf8 } from '../../encoding/text.ts';
import { isAppError } from '../../errors/errors.ts';

/** `contentEncoding` of a payload whose groups are encrypted. */
const GROUPS_ENCODING = 'jwe-groups';
/** `contentEncoding` of a payload in plain, as on registers in development mode. */
const PLAIN_ENCODING = 'identity';
/** `typ` of the protected header of a group. */
const GROUP_TYPE = 'disclosure-group+jwe';
const GROUP_CIPHER = 'A256GCM';
const MOST_GROUPS = 16;
const MOST_RECIPIENTS = 64;

const base64Url = z.string().regex(/^[A-Za-z0-9_-]*$/);

const recipientSchema = z.object({
  header: z.looseObject({ alg: z.string(), kid: z.string() }),
  encrypted_key: base64Url,
});

const groupSchema = z.object({
  groupId: z.string().min(1).max(64),
  commitment: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  jwe: z.object({
    protected: base64Url,
    recipients: z.array(recipientSchema).min(1).max(MOST_RECIPIENTS),
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
  groups: z.array(groupSchema).max(MOST_GROUPS),
});

/** The payload of an action whose data is encrypted in groups, one for each set of recipients. */
export type Envelope = z.output<typeof envelopeSchema>;
/** One encrypted group: a JWE in the JSON serialisation (RFC 7516, section 7.2). */
export type DisclosureGroup = z.output<typeof groupSchema>;
/** One recipient of a group, named by `kid`: a wallet address, or `{address}#{context}`. */
export type GroupRecipient = z.output<typeof recipientSchema>;

/** The envelope in the bytes of a payload; undefined for any other payload. */
export function findEnvelope(payload: Uint8Array): Envelope | undefined {
  return envelopeSchema.safeParse(findJson(payload)).data;
}

const plainSchema = z.object({
  v: z.literal(1),
  type: z.string(),
  contentEncoding: z.literal(PLAIN_ENCODING),
  data: z.custom<JsonObject>(isJsonObject),
});

/** The data of an action in the bytes of a payload that is not encrypted; undefined for any other payload. */
export function findPlainData(payload: Uint8Array): JsonObject | undefined {
  return plainSchema.safeParse(findJson(payload)).data?.data;
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

/**
 * The data in the plaintext of a group: the disclosed fields. Undefined when the plaintext does not fit the group's
 * commitment, or is no group's.
 */
export function findGroupData(
  { commitment }: Pick<DisclosureGroup, 'commitment'>,
  plaintext: Uint8Array,
): JsonObject | undefined {
  if (`sha256:${sha256Hex(plaintext)}` !== commitment) return undefined;
  const value = findJson(plaintext);
  const data = isJsonObject(value) ? value['data'] : undefined;
  return isJsonObject(data) ? data : undefined;
}

/** The value of JSON text whose names are unique; undefined for any other bytes. */
function findJson(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
