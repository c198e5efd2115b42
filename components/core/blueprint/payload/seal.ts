import { AES_GCM, aes256gcm } from '../../crypto/aes-gcm.ts';
import { sha256 } from '../../crypto/hash.ts';
import { type EncryptionKey, type RandomBytes, wrapContentKey } from '../../crypto/key-wrap.ts';
import { encodeBase64Url } from '../../encoding/base64.ts';
import { encodeHex } from '../../encoding/hex.ts';
import { canonicalBytes } from '../../encoding/jcs.ts';
import { utf8 } from '../../encoding/text.ts';
import { AppError } from '../../errors/errors.ts';
import {
  commitmentOf,
  type DisclosureGroup,
  type Envelope,
  GROUP_HEADER,
  type GroupRecipient,
  groupAad,
  groupsPayload,
  type PayloadOwner,
} from './envelope.ts';
import type { PlannedGroup } from './groups.ts';

const GROUP_DOMAIN = 'platform:group:v1';
const SEPARATOR = '\u001f';
const GROUP_ID_BYTES = 16;
const SALT_BYTES = 32;

/** The key of a wallet that groups are encrypted to. */
export interface RecipientKey extends EncryptionKey {
  /** `{address}`, or `{address}#platform:payload-encryption` */
  readonly kid: string;
}

/** The action whose groups are sealed. */
interface SealedAction extends PayloadOwner {
  readonly registerId: string;
}

/**
 * Seals the groups of an action: one General JWE (RFC 7516, section 7.2) a group, with a content key, salt and group id
 * of its own. All randomness is drawn from `random`, except the padding of RSA-OAEP; the envelope must be stored to be
 * repeated.
 *
 * jose's GeneralEncrypt takes no content key and no initialisation vector, and moves the ephemeral key of a single
 * recipient into the protected header; it opens what is made here.
 *
 * @param keys by address
 * @throws AppError unprocessable RECIPIENT_KEY_UNRESOLVED or INVALID_ENCRYPTION_KEY: nothing is sealed for some
 * recipients alone
 */
export function sealGroups(
  { registerId, ...owner }: SealedAction,
  groups: readonly PlannedGroup[],
  { keys, random }: { readonly keys: ReadonlyMap<string, RecipientKey>; readonly random: RandomBytes },
): Envelope {
  assertResolved(groups, keys);
  const action = { registerId, ...owner };
  return groupsPayload(
    owner,
    groups.map((group) => sealGroup(action, group, { keys, random })),
  );
}

function assertResolved(groups: readonly PlannedGroup[], keys: ReadonlyMap<string, RecipientKey>): void {
  const wallets = groups.flatMap(({ recipients }) => recipients).filter((address) => !keys.has(address));
  if (wallets.length === 0) return;
  const message = `No key is known that content for ${wallets.join(', ')} can be encrypted to`;
  throw new AppError('unprocessable', 'RECIPIENT_KEY_UNRESOLVED', message, { details: { wallets } });
}

function sealGroup(
  action: SealedAction,
  { recipients, fields, data }: PlannedGroup,
  { keys, random }: { readonly keys: ReadonlyMap<string, RecipientKey>; readonly random: RandomBytes },
): DisclosureGroup {
  const groupId = groupIdOf(action, recipients, random(GROUP_ID_BYTES));
  const plaintext = canonicalBytes({ salt: encodeBase64Url(random(SALT_BYTES)), fields, data });
  const aad = groupAad(action.registerId, action, groupId);
  const header = encodeBase64Url(canonicalBytes(GROUP_HEADER));
  const [contentKey, iv] = [random(AES_GCM.keyBytes), random(AES_GCM.ivBytes)];
  try {
    const input = { key: contentKey, iv, aad: jweAad(header, aad) };
    const { ciphertext, tag } = aes256gcm.seal(input, plaintext);
    const jwe = {
      protected: header,
      recipients: recipients.flatMap((address) => recipientOf(keys.get(address), contentKey, random)),
      iv: encodeBase64Url(iv),
      ciphertext: encodeBase64Url(ciphertext),
      tag: encodeBase64Url(tag),
      aad,
    };
    return { groupId, commitment: commitmentOf(plaintext), jwe };
  } finally {
    contentKey.fill(0);
    plaintext.fill(0);
  }
}

/** No value is hashed, so that an id says nothing about the data. */
function groupIdOf(
  { registerId, instanceId, actionId }: SealedAction,
  recipients: readonly string[],
  random: Uint8Array,
): string {
  const parts = [GROUP_DOMAIN, registerId, instanceId, actionId, recipients.join(','), encodeHex(random)];
  return encodeBase64Url(sha256(parts.join(SEPARATOR)).subarray(0, GROUP_ID_BYTES));
}

/** Additional authenticated data of a JWE that has an `aad` member (RFC 7516, section 5.1, step 14). */
export function jweAad(protectedHeader: string, aad: string): Uint8Array {
  return utf8(`${protectedHeader}.${aad}`);
}

function recipientOf(
  key: RecipientKey | undefined,
  contentKey: Uint8Array,
  random: RandomBytes,
): GroupRecipient[] {
  if (key === undefined) return [];
  const { header, encryptedKey } = wrapContentKey(key, contentKey, random);
  return [{ header: { ...header, kid: key.kid }, encrypted_key: encodeBase64Url(encryptedKey) }];
}
