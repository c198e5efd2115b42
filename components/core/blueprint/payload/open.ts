import { z } from 'zod';
import { AES_GCM, aes256gcm } from '../../crypto/aes-gcm.ts';
import { decodeBase64Any, isBase64Url } from '../../encoding/base64.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import {
  type DisclosureGroup,
  type Envelope,
  findGroupData,
  findGroupText,
  findJson,
  findRecipient,
  type GroupText,
  groupAad,
  isGroupHeader,
} from './envelope.ts';
import { jweAad } from './seal.ts';

/** Keys that the wallet service unwraps in one call. */
const KEYS_A_CALL = 256;

/** A recipient of a group as the wallet service takes it: header decoded, and encrypted key. */
export interface WrappedKey {
  readonly kid: string;
  readonly alg: string;
  readonly epk?: { readonly crv: string; readonly x: Uint8Array; readonly y: Uint8Array };
  readonly apu: Uint8Array;
  readonly apv: Uint8Array;
  readonly encryptedKey: Uint8Array;
}

/** A content key, or the code of a refusal. */
export type UnwrappedKey = { readonly contentKey: Uint8Array } | { readonly refusal: string };

type Unwrap = (keys: readonly WrappedKey[]) => Promise<readonly UnwrappedKey[]>;

/** A sealed step with its encrypted groups. */
interface SealedStep {
  readonly registerId: string;
  readonly txId: string;
  readonly envelope: Envelope;
}

/** What a wallet reads in one group of a step, or why it does not. */
export type OpenedGroup = { readonly txId: string; readonly groupId: string } & (
  | GroupContent
  | { readonly failure: 'DECRYPT_FAILED' | 'WALLET_ACCESS_DENIED' }
);

/** The content of a group. */
interface GroupContent {
  readonly data: JsonObject;
  /** Only where it was asked for, and has the form in which it can be shown to others. */
  readonly text?: GroupText;
}

interface OpenOptions {
  /** The texts of groups are wanted, which prove to others what was disclosed. */
  readonly withTexts?: boolean;
}

interface GroupOpening {
  readonly step: SealedStep;
  readonly group: DisclosureGroup;
  /** Undefined when the recipient's header cannot be read. */
  readonly wrapped: WrappedKey | undefined;
}

/**
 * Opens the groups of steps that are addressed to a wallet, in the order of the steps. A group that does not open is an
 * entry with its failure. Content keys are wiped.
 *
 * @param kids key ids of the wallet, the preferred one first: a group is opened with the first that it lists
 * @param unwrap the wallet service's UnwrapKeys for that wallet, with 1 to 256 keys; answers in their order
 */
export async function openGroups(
  steps: readonly SealedStep[],
  kids: readonly string[],
  unwrap: Unwrap,
  options: OpenOptions = {},
): Promise<readonly OpenedGroup[]> {
  const openings = steps.flatMap((step) =>
    step.envelope.groups.flatMap((group) => openingOf(step, group, kids)),
  );
  const opened: OpenedGroup[] = [];
  for (let start = 0; start < openings.length; start += KEYS_A_CALL) {
    const batch = openings.slice(start, start + KEYS_A_CALL);
    opened.push(...(await openBatch(batch, unwrap, options)));
  }
  return opened;
}

function openingOf(step: SealedStep, group: DisclosureGroup, kids: readonly string[]): GroupOpening[] {
  const kid = kids.find((each) => findRecipient(group, each) !== undefined);
  return kid === undefined ? [] : [{ step, group, wrapped: findWrappedKey(group, kid) }];
}

async function openBatch(
  batch: readonly GroupOpening[],
  unwrap: Unwrap,
  options: OpenOptions,
): Promise<OpenedGroup[]> {
  const wrapped = batch.flatMap((opening) => opening.wrapped ?? []);
  const answers = wrapped.length === 0 ? [] : await unwrap(wrapped);
  const byKey = new Map(wrapped.map((key, index) => [key, answers[index]]));
  try {
    return batch.map((opening) => ({
      txId: opening.step.txId,
      groupId: opening.group.groupId,
      ...openOne(opening, opening.wrapped === undefined ? undefined : byKey.get(opening.wrapped), options),
    }));
  } finally {
    for (const answer of answers) if ('contentKey' in answer) answer.contentKey.fill(0);
  }
}

function openOne(
  { step, group }: GroupOpening,
  answer: UnwrappedKey | undefined,
  options: OpenOptions,
): GroupContent | { readonly failure: 'DECRYPT_FAILED' | 'WALLET_ACCESS_DENIED' } {
  if (answer === undefined) return { failure: 'DECRYPT_FAILED' };
  if ('refusal' in answer) {
    const isDenied = answer.refusal === 'WALLET_ACCESS_DENIED';
    return { failure: isDenied ? 'WALLET_ACCESS_DENIED' : 'DECRYPT_FAILED' };
  }
  return openGroup(step, { group, contentKey: answer.contentKey }, options) ?? { failure: 'DECRYPT_FAILED' };
}

/**
 * The content of a group. Undefined when the key is another one, when anything that it authenticates changed, when it
 * belongs to another action, and when its plaintext does not fit its commitment.
 */
export function openGroup(
  { registerId, envelope }: Pick<SealedStep, 'registerId' | 'envelope'>,
  { group, contentKey }: { readonly group: DisclosureGroup; readonly contentKey: Uint8Array },
  { withTexts = false }: OpenOptions = {},
): GroupContent | undefined {
  const { jwe } = group;
  if (contentKey.length !== AES_GCM.keyBytes) return undefined;
  if (jwe.aad !== groupAad(registerId, envelope, group.groupId)) return undefined;
  if (!isGroupHeader(protectedHeader(group))) return undefined;
  const [iv, ciphertext, tag] = [jwe.iv, jwe.ciphertext, jwe.tag].map(decodeBase64Any);
  if (iv === undefined || ciphertext === undefined || tag === undefined) return undefined;
  const input = { key: contentKey, iv, aad: jweAad(jwe.protected, jwe.aad) };
  const plaintext = aes256gcm.open(input, { ciphertext, tag });
  if (plaintext === undefined) return undefined;
  const data = findGroupData(group, plaintext);
  const text = withTexts ? findGroupText(plaintext) : undefined;
  plaintext.fill(0);
  return data && { data, ...(text !== undefined && { text }) };
}

function protectedHeader({ jwe }: DisclosureGroup): JsonObject {
  const value = findJson(decodeBase64Any(jwe.protected));
  return isJsonObject(value) ? value : {};
}

const encoded = z
  .string()
  .refine(isBase64Url)
  .transform((text) => decodeBase64Any(text));

/** The highest bit of an X25519 key is ignored (RFC 7748, section 5); with it a key would have two spellings. */
const ephemeralKey = z.discriminatedUnion('crv', [
  z.object({
    kty: z.literal('OKP'),
    crv: z.literal('X25519'),
    x: encoded.refine((bytes) => bytes.length === 32 && (bytes[31] ?? 0) < 0x80),
    y: z.undefined().optional(),
  }),
  z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: encoded, y: encoded }),
]);

const headerSchema = z.object({
  kid: z.string(),
  alg: z.enum(['ECDH-ES+A256KW', 'RSA-OAEP-256']),
  epk: ephemeralKey.optional(),
  apu: encoded.optional(),
  apv: encoded.optional(),
  // An extension that must be understood, and compressed content, are refused.
  crit: z.undefined().optional(),
  zip: z.undefined().optional(),
});

/** Libraries may put the ephemeral key of a single recipient into the protected header; no name is in both headers. */
function findWrappedKey(group: DisclosureGroup, kid: string): WrappedKey | undefined {
  const recipient = findRecipient(group, kid);
  const shared = protectedHeader(group);
  if (recipient === undefined || Object.keys(shared).some((name) => Object.hasOwn(recipient.header, name))) {
    return undefined;
  }
  const header = headerSchema.safeParse({ ...shared, ...recipient.header }).data;
  if (header === undefined) return undefined;
  const { epk, apu, apv, alg } = header;
  const none = new Uint8Array();
  return {
    kid,
    alg,
    apu: apu ?? none,
    apv: apv ?? none,
    encryptedKey: decodeBase64Any(recipient.encrypted_key),
    ...(epk !== undefined && { epk: { crv: epk.crv, x: epk.x, y: epk.y ?? none } }),
  };
}
