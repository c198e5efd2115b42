import { randomBytes } from 'node:crypto';
import type { RecipientKey } from '#core/blueprint/payload/seal.ts';
import { RECIPIENT_ALGORITHMS, wrapContentKey } from '#core/crypto/key-wrap.ts';
import { findBase64Any } from '#core/encoding/base64.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { Wallets } from '../clients/wallets.ts';
import { refusal } from '../errors.ts';
import type { ExternalKey } from '../operations/operation.ts';

interface KeyDeps {
  readonly ledger: Pick<Ledger, 'findParticipantKeys'>;
  readonly wallets: Pick<Wallets, 'findEncryptionKeys'>;
}

const contentKeyBytes = 32;
/** A wallet that was rotated can still decrypt. */
const usable: readonly string[] = ['Active', 'Rotated'];

/**
 * The keys that content for wallets is encrypted to. A revoked participant record or key of an organisation wins over all;
 * then the key of the wallet here, the key of the participant record, and the one that the sender names.
 * @throws AppError unprocessable RECIPIENT_REVOKED, RECIPIENT_KEY_UNRESOLVED with the wallets
 */
export async function resolveRecipientKeys(
  { ledger, wallets }: KeyDeps,
  registerId: string,
  addresses: readonly string[],
  external: Readonly<Record<string, ExternalKey>>,
): Promise<ReadonlyMap<string, RecipientKey>> {
  const [records, own] = await Promise.all([
    ledger.findParticipantKeys(registerId, addresses),
    wallets.findEncryptionKeys(addresses),
  ]);
  const revoked = [...records, ...own]
    .filter(({ status }) => status === 'Revoked')
    .map(({ address }) => address);
  if (revoked.length > 0) throw refusal('RECIPIENT_REVOKED', { details: { wallets: [...new Set(revoked)] } });
  const keys = new Map<string, RecipientKey>();
  const unresolved: string[] = [];
  for (const address of addresses) {
    const key = findKey(address);
    if (key === undefined) unresolved.push(address);
    else keys.set(address, key);
  }
  if (unresolved.length > 0) throw refusal('RECIPIENT_KEY_UNRESOLVED', { details: { wallets: unresolved } });
  return keys;

  function findKey(address: string): RecipientKey | undefined {
    const known = own.find((each) => each.address === address);
    // A locked or deleted wallet decrypts nothing, whatever other key is named for it.
    if (known !== undefined) return usable.includes(known.status) ? keyOf(known.kid, known) : undefined;
    const record = records.find((each) => each.address === address);
    const given = record !== undefined && record.publicKey !== '' ? record : named(address);
    const key = keyOf(address, given);
    return key !== undefined && isEncryptable(key) ? key : undefined;
  }

  function named(address: string): ExternalKey | undefined {
    return Object.hasOwn(external, address) ? external[address] : undefined;
  }
}

/** Whether content can be encrypted to a key that no service here made: bytes of another form, or of low order, are none. */
function isEncryptable(key: RecipientKey): boolean {
  try {
    wrapContentKey(key, Buffer.alloc(contentKeyBytes), randomBytes);
    return true;
  } catch (error) {
    if (isAppError(error, 'unprocessable')) return false;
    throw error;
  }
}

function keyOf(
  kid: string,
  given: { readonly algorithm: string; readonly publicKey: string } | undefined,
): RecipientKey | undefined {
  const name = given?.algorithm === 'RSA' ? 'RSA-4096' : given?.algorithm;
  const algorithm = RECIPIENT_ALGORITHMS.find((each) => each === name);
  const publicKey = given === undefined ? undefined : findBase64Any(given.publicKey);
  return algorithm === undefined || publicKey === undefined ? undefined : { kid, algorithm, publicKey };
}
