import { createHash, randomUUID } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import { refusal } from '../../errors.ts';
import { type AuthorityDeps, authorizeView, personOf } from '../../grants/authority.ts';
import type { SignDeps } from '../../signing/sign.ts';
import { announceCredential } from '../holder/announce.ts';
import { holderJwk, holderKeyOf } from '../holder/holder-key.ts';
import { lockWallet } from '../records/changes/store.ts';
import { getWallet } from '../records/store.ts';
import { assertUsable } from '../records/usable.ts';
import { administers, isOwner, type Wallet } from '../records/wallet.ts';
import type { OpenedCredential } from './match.ts';
import { openContents, sealContent } from './sealed.ts';
import { type StatusDeps, statusOf, withFreshStatus } from './status.ts';
import {
  deleteCredential,
  findByDigest,
  findCredential,
  type HeldCredential,
  insertCredential,
  listCredentials,
  measureCredentials,
} from './store.ts';
import { type VerifiedCredential, verifyCredential } from './verify.ts';

export type KeepDeps = StatusDeps & AuthorityDeps & Pick<SignDeps, 'keyring'>;

/** Most credentials of one wallet, and most bytes of all of them, as they are stored. */
const MOST_CREDENTIALS = 500;
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Whether a caller reads what the credentials of a wallet say: its person, or the Administrators of the organisation whose
 * own wallet it is. A grant is about keys and never opens credentials.
 */
export function isHolder(wallet: Wallet, caller: Caller): boolean {
  return isOwner(wallet, caller) || (wallet.kind === 'Organization' && administers(wallet, caller));
}

/** @throws AppError not_found WALLET_NOT_FOUND, forbidden WALLET_ACCESS_DENIED */
export async function getHeldWallet(deps: KeepDeps, caller: Caller, idOrAddress: string): Promise<Wallet> {
  const wallet = await getViewedWallet(deps, caller, idOrAddress);
  if (!isHolder(wallet, caller)) throw refusal('WALLET_ACCESS_DENIED');
  return wallet;
}

/** A wallet whose credentials a caller may list, without what they say. */
export async function getViewedWallet(deps: KeepDeps, caller: Caller, idOrAddress: string): Promise<Wallet> {
  personOf(caller);
  const wallet = await getWallet(deps.db.read, idOrAddress);
  await authorizeView(deps, caller, wallet);
  return wallet;
}

/**
 * Stores a credential that a wallet received, once it is verified. The same credential again is the stored one.
 * @throws AppError unprocessable CREDENTIAL_INVALID, CREDENTIAL_ISSUER_UNKNOWN; conflict CREDENTIALS_FULL; locked WALLET_LOCKED; gone WALLET_DELETED; unavailable
 * CREDENTIALS_UNAVAILABLE
 */
export async function storeCredential(
  deps: KeepDeps,
  caller: Caller,
  idOrAddress: string,
  text: string,
): Promise<{ readonly credential: HeldCredential; readonly wallet: Wallet; readonly isNew: boolean }> {
  const wallet = await getHeldWallet(deps, caller, idOrAddress);
  assertUsable(wallet, 'decrypt');
  const digest = createHash('sha256').update(text).digest();
  const same = await findByDigest(deps.db.read, wallet.id, digest);
  if (same !== undefined) return { credential: same, wallet, isNew: false };
  // RSA wallets derive no keys.
  const key = wallet.keyType === 'RSA' ? undefined : await holderKeyOf(deps, wallet);
  const nowMs = deps.clock.nowMs();
  const verified = await verifyCredential(text, {
    judge: deps.judge,
    holderJwk: key && { ...holderJwk(key) },
    nowMs,
  });
  const id = randomUUID();
  const sealed = await sealContent(deps.keyring, wallet, id, { credential: text, claims: verified.claims });
  const credential = recordOf(verified, { id, walletId: wallet.id, digest, sealed, nowMs });
  const isNew = await deps.db.transact(async (tx) => {
    assertUsable(await lockWallet(tx, wallet.id), 'decrypt');
    const { count, bytes } = await measureCredentials(tx, wallet.id);
    if (count >= MOST_CREDENTIALS || bytes + sealed.length > MOST_BYTES) throw refusal('CREDENTIALS_FULL');
    const inserted = await insertCredential(tx, credential);
    if (inserted) await announceCredential(tx, { wallet, credentialId: id });
    return inserted;
  });
  if (isNew) {
    deps.notify();
    return { credential, wallet, isNew };
  }
  const first = await findByDigest(deps.db.read, wallet.id, digest);
  if (first === undefined) throw refusal('CREDENTIAL_NOT_FOUND');
  return { credential: first, wallet, isNew };
}

type RowFacts = Pick<HeldCredential, 'id' | 'walletId' | 'digest' | 'sealed'> & { readonly nowMs: number };

function recordOf(verified: VerifiedCredential, { nowMs, ...facts }: RowFacts): HeldCredential {
  const { judgement, status } = verified;
  return {
    ...facts,
    format: verified.format,
    type: verified.type,
    issuer: verified.issuer,
    issuerClaim: verified.issuerClaim,
    isTrusted: judgement.isTrusted,
    trustReason: judgement.reason,
    listedStatus: judgement.status ?? 'Active',
    statusReference: status === 'unsupported' ? undefined : status,
    statusCheckedAtMs: nowMs,
    isBoundToHolderKey: verified.isBoundToHolderKey,
    claimNames: verified.names,
    issuedAtMs: verified.issuedAtMs,
    expiresAtMs: verified.expiresAtMs,
    storedAtMs: nowMs,
  };
}

/** One credential, with its status as its issuer has it now. @throws AppError not_found CREDENTIAL_NOT_FOUND */
export async function getCredential(deps: KeepDeps, wallet: Wallet, id: string): Promise<HeldCredential> {
  const found = await findCredential(deps.db.read, wallet.id, id);
  if (found === undefined) throw refusal('CREDENTIAL_NOT_FOUND');
  const [fresh] = await withFreshStatus(deps, [found]);
  if (fresh === undefined) throw refusal('CREDENTIAL_NOT_FOUND');
  return fresh;
}

/** The active credentials of a wallet that something asks for, with what they say. */
export async function openActive(
  deps: KeepDeps,
  wallet: Wallet,
  isAsked: (credential: HeldCredential) => boolean,
): Promise<readonly OpenedCredential[]> {
  assertUsable(wallet, 'decrypt');
  const isActive = (each: HeldCredential) => statusOf(each, deps.clock.nowMs()) === 'Active';
  const asked = (await listCredentials(deps.db.read, wallet.id)).filter(isAsked);
  const active = (await withFreshStatus(deps, asked)).filter(isActive);
  const contents = await openContents(deps.keyring, wallet, active);
  return active.flatMap((credential, index) => {
    const content = contents[index];
    return content === undefined ? [] : [{ credential, text: content.credential, claims: content.claims }];
  });
}

/** What a credential says, for its holder. @throws AppError locked WALLET_LOCKED, gone WALLET_DELETED */
export async function openCredential(deps: KeepDeps, wallet: Wallet, credential: HeldCredential) {
  assertUsable(wallet, 'decrypt');
  const [content] = await openContents(deps.keyring, wallet, [credential]);
  if (content === undefined) throw refusal('CREDENTIAL_NOT_FOUND');
  return content;
}

/** Deletes the copy of a wallet; the credential itself stays what it is. @throws AppError not_found CREDENTIAL_NOT_FOUND */
export async function removeCredential(deps: KeepDeps, wallet: Wallet, id: string): Promise<void> {
  const isDeleted = await deps.db.transact((tx) => deleteCredential(tx, wallet.id, id));
  if (!isDeleted) throw refusal('CREDENTIAL_NOT_FOUND');
}
