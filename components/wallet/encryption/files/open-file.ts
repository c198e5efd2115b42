import { flattenedDecrypt } from 'jose';
import {
  type DisclosureGroup,
  type Envelope,
  findEnvelope,
  findGroupData,
  findRecipient,
  type GroupRecipient,
  groupAad,
  isGroupHeader,
} from '#core/blueprint/payload/envelope.ts';
import { type FileReference, findFile } from '#core/blueprint/payload/files.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import type { PrivateKey } from '#core/crypto/sign.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { refusal } from '../../errors.ts';
import type { Wallet } from '../../wallets/records/wallet.ts';
import { authorizeDecrypt } from '../authorize-decrypt.ts';
import type { DecryptDeps } from '../encrypt.ts';
import { type KeyUse, keyId, keyPath } from '../key-id.ts';
import { KEY_WRAP, privateKeyObject } from '../key-objects.ts';

/** Sealed transactions of the register service. */
export interface Records {
  /** The exact bytes of a sealed transaction. @throws AppError not_found for an unknown one */
  getSealed(
    registerId: string,
    txId: string,
  ): Promise<{ readonly record: Uint8Array; readonly payload: Uint8Array }>;
}

export interface OpenFileDeps extends DecryptDeps {
  readonly records: Records;
}

/** The place of a file: a field of an action's data. */
interface FilePlace {
  readonly wallet: string;
  readonly registerId: string;
  readonly txId: string;
  readonly field: string;
  readonly index: number;
}

/**
 * The file at a place, for a caller who may decrypt as the wallet.
 * @throws AppError as decryption does; not_found TX_NOT_FOUND or FILE_NOT_FOUND, forbidden NOT_A_RECIPIENT,
 * unprocessable DECRYPT_FAILED, unavailable REGISTER_UNAVAILABLE
 */
export async function openFile(deps: OpenFileDeps, caller: Caller, place: FilePlace): Promise<FileReference> {
  const { wallet, authority } = await authorizeDecrypt(deps, caller, place.wallet);
  const envelope = await readEnvelope(deps.records, place);
  const addressed = (envelope?.groups ?? []).flatMap((group) => addressedTo(wallet, authority, group));
  if (envelope === undefined || addressed.length === 0) throw refusal('NOT_A_RECIPIENT');
  for (const one of addressed) {
    const aad = groupAad(place.registerId, envelope, one.group.groupId);
    const data = await openGroup(deps, wallet, { ...one, aad });
    const file = findFile(data, place.field, place.index);
    if (file !== undefined) return file;
  }
  throw refusal('FILE_NOT_FOUND');
}

/** A group, the recipient in it that the caller reads as, and the key for that. */
interface Addressed {
  readonly group: DisclosureGroup;
  readonly recipient: GroupRecipient;
  readonly use: KeyUse;
}

/**
 * A delegate reads with the key of payload encryption alone; an owner with the primary key too, which is the only key
 * of an RSA wallet.
 */
function addressedTo(
  { address, keyType }: Wallet,
  authority: 'owner' | 'delegate',
  group: DisclosureGroup,
): readonly Addressed[] {
  const uses: readonly KeyUse[] = keyType === 'RSA' ? ['primary'] : ['payload-encryption', 'primary'];
  const found = uses.flatMap((use) => {
    const recipient = findRecipient(group, keyId(address, use));
    return recipient === undefined || (use === 'primary' && authority === 'delegate')
      ? []
      : [{ group, recipient, use }];
  });
  return found.slice(0, 1);
}

/** The encrypted groups of a transaction; undefined when its payload has none. */
async function readEnvelope(
  records: Records,
  { registerId, txId }: FilePlace,
): Promise<Envelope | undefined> {
  const { record, payload } = await records.getSealed(registerId, txId).catch((cause: unknown) => {
    if (isAppError(cause, 'not_found')) throw refusal('TX_NOT_FOUND', { cause });
    throw refusal('REGISTER_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
  });
  const sealed = parseRecord(record);
  // The register service stores these bytes; the key of a wallet opens none that another transaction is made of.
  if (sealed.txId !== txId || sealed.registerId !== registerId || sealed.payloadHash !== sha256Hex(payload)) {
    throw refusal('TX_NOT_FOUND');
  }
  return findEnvelope(payload);
}

interface Sealed extends Addressed {
  /** Additional data that the group must have. */
  readonly aad: string;
}

async function openGroup(
  deps: Pick<OpenFileDeps, 'keyring'>,
  wallet: Wallet,
  sealed: Sealed,
): Promise<JsonObject> {
  const key = await deps.keyring.privateKey(wallet, keyPath(sealed.use));
  try {
    return await decryptGroup(key, KEY_WRAP[wallet.keyType], sealed);
  } finally {
    key.privateKey.fill(0);
  }
}

async function decryptGroup(
  key: PrivateKey,
  keyWrap: string,
  { group, recipient, aad }: Sealed,
): Promise<JsonObject> {
  const { jwe } = group;
  if (jwe.aad !== aad) throw refusal('DECRYPT_FAILED');
  const { recipients: _all, ...content } = jwe;
  const opened = await flattenedDecrypt({ ...content, ...recipient }, privateKeyObject(key), {
    keyManagementAlgorithms: [keyWrap],
    contentEncryptionAlgorithms: ['A256GCM'],
    // Groups are not compressed: a small one could grow without bound.
    maxDecompressedLength: 0,
  }).catch((cause: unknown) => {
    throw refusal('DECRYPT_FAILED', { cause });
  });
  const data = findGroupData(group, opened.plaintext);
  opened.plaintext.fill(0);
  if (data === undefined || !isGroupHeader(opened.protectedHeader ?? {})) throw refusal('DECRYPT_FAILED');
  return data;
}
