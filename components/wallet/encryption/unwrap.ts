import type { KeyObject } from 'node:crypto';
import { unwrapAgreedKey } from '#core/crypto/key-wrap.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { KEYS_UNWRAPPED, type KeysUnwrapped } from '#core/events/key-use-events.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Database } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { Keyring } from '../custody/keyring.ts';
import type { WalletDatabase } from '../database/schema.ts';
import type { AuthorityDeps } from '../grants/authority.ts';
import type { Wallet } from '../wallets/records/wallet.ts';
import { authorizeDecrypt } from './authorize-decrypt.ts';
import { findKeyUse, type KeyUse, keyPath } from './key-id.ts';
import { ephemeralKeyObject, KEY_WRAP, privateKeyObject } from './key-objects.ts';

export interface UnwrapDeps extends AuthorityDeps {
  readonly db: Database<WalletDatabase>;
  readonly keyring: Pick<Keyring, 'privateKeys'>;
  /** Notifies the consumers of the event log of a new event. */
  readonly notify: () => void;
}

/** A recipient of a JWE: its header and its encrypted key. */
export interface WrappedKey {
  readonly kid: string;
  readonly alg: string;
  readonly epk: { readonly crv: string; readonly x: Uint8Array; readonly y: Uint8Array } | undefined;
  readonly apu: Uint8Array;
  readonly apv: Uint8Array;
  readonly encryptedKey: Uint8Array;
}

/** One answer for every cause of a failed decryption, because a distinction would be an oracle. */
type UnwrappedKey =
  | { readonly contentKey: Buffer }
  | { readonly refusal: 'DECRYPT_FAILED' | 'WALLET_ACCESS_DENIED' };

interface UnwrapRequest {
  readonly wallet: string;
  readonly keys: readonly WrappedKey[];
  /** client id of the service that calls */
  readonly service: string;
}

const contentKeyBytes = 32;
const wrappedKeyBytes = 40;
const coordinateBytes = 32;
/** Agreement party information is short; every byte of it is hashed for each key. */
const maxPartyBytes = 1024;

/**
 * Unwraps content keys of one wallet: one judgement of authority, one decryption of the seed, one event in the log
 * before the answer. A delegate may use the key of `platform:payload-encryption` only. The caller wipes the keys.
 */
export async function unwrapAs(
  deps: UnwrapDeps,
  caller: Caller,
  request: UnwrapRequest,
): Promise<readonly UnwrappedKey[]> {
  const { wallet, authority } = await authorizeDecrypt(deps, caller, request.wallet);
  const mayUse = (use: KeyUse) => authority === 'owner' || use === 'payload-encryption';
  const named = request.keys.map(({ kid }) => findKeyUse(kid, wallet.address));
  const opened = await openKeys(deps, wallet, [...new Set(named)].filter(isPresent).filter(mayUse));
  const answers: UnwrappedKey[] = [];
  try {
    for (const [index, wrapped] of request.keys.entries()) {
      const use = named[index];
      const denied = use !== undefined && !mayUse(use);
      const contentKey = use === undefined ? undefined : await unwrap(wallet, opened.get(use), wrapped);
      const refused = { refusal: denied ? 'WALLET_ACCESS_DENIED' : 'DECRYPT_FAILED' } as const;
      answers.push(contentKey === undefined ? refused : { contentKey });
    }
    await deps.db.transact((tx) => appendEvent(tx, eventOf(deps, caller, { wallet, request, answers })));
  } catch (error) {
    wipeKeys(answers);
    throw error;
  }
  deps.notify();
  return answers;
}

export function wipeKeys(answers: readonly UnwrappedKey[]): void {
  for (const answer of answers) if ('contentKey' in answer) answer.contentKey.fill(0);
}

function isPresent(use: KeyUse | undefined): use is KeyUse {
  return use !== undefined;
}

/** Private keys by their use. An RSA wallet has only its primary key. */
async function openKeys(
  { keyring }: UnwrapDeps,
  wallet: Wallet,
  named: readonly KeyUse[],
): Promise<ReadonlyMap<KeyUse, KeyObject>> {
  const uses = wallet.keyType === 'RSA' ? named.filter((use) => use === 'primary') : named;
  if (uses.length === 0) return new Map();
  const keys = await keyring.privateKeys(wallet, uses.map(keyPath));
  try {
    return new Map(keys.flatMap((key, index) => pairOf(uses[index], privateKeyObject(key))));
  } finally {
    for (const { privateKey } of keys) privateKey.fill(0);
  }
}

function pairOf(use: KeyUse | undefined, key: KeyObject): [KeyUse, KeyObject][] {
  return use === undefined ? [] : [[use, key]];
}

/** The content key; undefined when it cannot be unwrapped. */
async function unwrap(
  { keyType }: Wallet,
  key: KeyObject | undefined,
  wrapped: WrappedKey,
): Promise<Buffer | undefined> {
  if (key === undefined || wrapped.alg !== KEY_WRAP[keyType]) return undefined;
  try {
    const contentKey =
      keyType === 'RSA' ? await decryptRsa(key, wrapped) : decryptAgreed(keyType, key, wrapped);
    if (contentKey.length === contentKeyBytes) return contentKey;
    contentKey.fill(0);
    return undefined;
  } catch {
    return undefined;
  }
}

/** In a thread of the pool, because an operation takes milliseconds. */
async function decryptRsa(key: KeyObject, { encryptedKey }: WrappedKey): Promise<Buffer> {
  const algorithm = { name: 'RSA-OAEP', hash: 'SHA-256' };
  const cryptoKey = key.toCryptoKey(algorithm, false, ['decrypt']);
  return Buffer.from(await crypto.subtle.decrypt('RSA-OAEP', cryptoKey, Buffer.from(encryptedKey)));
}

function decryptAgreed(keyType: 'ED25519' | 'NISTP256', key: KeyObject, wrapped: WrappedKey): Buffer {
  const { epk, apu, apv, encryptedKey } = wrapped;
  const crv = keyType === 'ED25519' ? 'X25519' : 'P-256';
  const isWhole =
    epk?.crv === crv &&
    epk.x.length === coordinateBytes &&
    epk.y.length === (crv === 'P-256' ? coordinateBytes : 0) &&
    encryptedKey.length === wrappedKeyBytes &&
    apu.length <= maxPartyBytes &&
    apv.length <= maxPartyBytes;
  if (!isWhole) return Buffer.alloc(0);
  const publicKey = ephemeralKeyObject(crv, epk.x, epk.y);
  return unwrapAgreedKey(key, { publicKey, apu, apv, encryptedKey });
}

interface Unwrapping {
  readonly wallet: Wallet;
  readonly request: UnwrapRequest;
  readonly answers: readonly UnwrappedKey[];
}

function eventOf({ clock }: UnwrapDeps, caller: Caller, { wallet, request, answers }: Unwrapping) {
  const data: KeysUnwrapped = {
    walletId: wallet.id,
    address: wallet.address,
    organizationId: wallet.ownerOrganizationId ?? caller.organizationId ?? null,
    platformUserId: caller.platformUserId ?? null,
    service: request.service,
    requested: answers.length,
    unwrapped: answers.filter((answer) => 'contentKey' in answer).length,
    occurredAt: apiTimestamp(clock.nowMs()),
  };
  return { kind: KEYS_UNWRAPPED, key: wallet.id, data };
}
