import { flattenedDecrypt } from 'jose';
import {
  type DisclosureGroup,
  type Envelope,
  findClearPayload,
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
import { parseRecord, type SealedRecord } from '#core/ledger/record.ts';
import { refusal } from '../../errors.ts';
import type { Wallet } from '../../wallets/records/wallet.ts';
import { authorizeDecrypt, type DecryptAuthority } from '../authorize-decrypt.ts';
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
 * The file at a place, for a caller who may decrypt as the wallet. Of content that is not encrypted, the wallet has to be
 * the sender or a recipient of the transaction.
 * @throws AppError as decryption does; not_found TX_NOT_FOUND or FILE_NOT_FOUND, forbidden NOT_A_RECIPIENT,
 * unprocessable DECRYPT_FAILED, unavailable REGISTER_UNAVAILABLE
 */
export async function openFile(deps: OpenFileDeps, caller: Caller, place: FilePlace): Promise<FileReference> {
  const reader = await authorizeDecrypt(deps, caller, place.wallet);
  const { record, payload } = await readSealed(deps.records, place);
  const envelope = findEnvelope(payload);
  const file =
    envelope === undefined
      ? findPlainFile(reader.wallet, place, { record, payload })
      : await findSealedFile(deps, reader, { ...place, envelope });
  if (file === undefined) throw refusal('FILE_NOT_FOUND');
  return file;
}

function findPlainFile(
  { address }: Wallet,
  { field, index }: FilePlace,
  { record, payload }: SealedTransaction,
): FileReference | undefined {
  const data = findClearPayload(payload)?.data;
  const isParty = record.senderAddress === address || record.recipients.includes(address);
  if (data === undefined || !isParty) throw refusal('NOT_A_RECIPIENT');
  return findFile(data, field, index);
}

async function findSealedFile(
  deps: OpenFileDeps,
  { wallet, authority }: DecryptAuthority,
  { envelope, registerId, field, index }: FilePlace & { readonly envelope: Envelope },
): Promise<FileReference | undefined> {
  const addressed = envelope.groups.flatMap((group) => addressedTo(wallet, authority, group));
  if (addressed.length === 0) throw refusal('NOT_A_RECIPIENT');
  for (const one of addressed) {
    const aad = groupAad(registerId, envelope, one.group.groupId);
    const data = await openGroup(deps, wallet, { ...one, aad });
    const file = findFile(data, field, index);
    if (file !== undefined) return file;
  }
  return undefined;
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

interface SealedTransaction {
  readonly record: SealedRecord;
  readonly payload: Uint8Array;
}

/** The transaction of a place, with the payload that its record is made of. */
async function readSealed(records: Records, { registerId, txId }: FilePlace): Promise<SealedTransaction> {
  const found = await records.getSealed(registerId, txId).catch((cause: unknown) => {
    if (isAppError(cause, 'not_found')) throw refusal('TX_NOT_FOUND', { cause });
    throw refusal('REGISTER_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
  });
  const { payload } = found;
  const record = parseRecord(found.record);
  // The register service stores these bytes; the key of a wallet opens none that another transaction is made of.
  if (record.txId !== txId || record.registerId !== registerId || record.payloadHash !== sha256Hex(payload)) {
    throw refusal('TX_NOT_FOUND');
  }
  return { record, payload };
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
