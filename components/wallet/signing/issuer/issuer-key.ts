import { createHash, createPublicKey } from 'node:crypto';
import type { Signer } from '#core/crypto/sign.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { clientIdOf } from '#core/identity/services.ts';
import type { Logger } from '#kit/log/log.ts';
import { contextSlot, HAIP_ISSUER_SIGNING, PRIMARY_SLOT, slotPath } from '../../custody/contexts.ts';
import { refusal } from '../../errors.ts';
import { getWallet } from '../../wallets/records/store.ts';
import { assertUsable } from '../../wallets/records/usable.ts';
import type { SignDeps } from '../sign.ts';

export interface IssuerKeyDeps extends Pick<SignDeps, 'db' | 'keyring'> {
  readonly log: Logger;
}

/** The P-256 key of an organisation that its certificates name. */
interface IssuerKey {
  readonly signer: Signer;
  /** `HaipCoKey`: slot 106, because the primary key of the wallet is not P-256 */
  readonly source: 'Primary' | 'HaipCoKey';
  readonly walletAddress: string;
}

/** The tenant service requests certificates, the credential service issues credentials under them. */
const users: readonly string[] = [clientIdOf('tenant'), clientIdOf('credential')];

/**
 * The key that certificates of an organisation name, for the services that need it.
 * @throws AppError forbidden FORBIDDEN, not_found WALLET_NOT_FOUND, unprocessable CERT_KEY_NOT_ELIGIBLE, locked
 * WALLET_LOCKED, gone WALLET_DELETED
 */
export async function getIssuerKey(deps: IssuerKeyDeps, caller: Caller, address: string): Promise<IssuerKey> {
  assertUser(caller);
  const wallet = await getWallet(deps.db.read, address);
  if (wallet.kind !== 'Organization' || wallet.keyType === 'RSA') throw refusal('CERT_KEY_NOT_ELIGIBLE');
  assertUsable(wallet, 'sign');
  const walletAddress = wallet.address;
  if (wallet.keyType === 'NISTP256') {
    const signer = await deps.keyring.signer(wallet, slotPath(PRIMARY_SLOT));
    return { signer, source: 'Primary', walletAddress };
  }
  const path = slotPath(contextSlot(HAIP_ISSUER_SIGNING));
  const signer = await deps.keyring.signer(wallet, path, 'NISTP256');
  return { signer, source: 'HaipCoKey', walletAddress };
}

/** Signs the digest of a certificate, a certificate request or a credential; r and s, 32 bytes each. */
export async function signAsIssuer(
  deps: IssuerKeyDeps,
  caller: Caller,
  address: string,
  digest: Uint8Array,
): Promise<Uint8Array> {
  const { signer, source, walletAddress } = await getIssuerKey(deps, caller, address);
  const signature = signer.signDigest(digest);
  const { clientId } = caller;
  deps.log.info(
    { securityAudit: 'wallet.issuer-sign', walletAddress, source, clientId },
    'an issuer key signed',
  );
  return signature;
}

/** SHA-256 thumbprint of a P-256 public key (RFC 7638). */
export function thumbprintOf(spki: Uint8Array): string {
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  const { crv, kty, x, y } = key.export({ format: 'jwk' });
  return encodeBase64Url(createHash('sha256').update(canonicalBytes({ crv, kty, x, y })).digest());
}

/** A token that acts for a person may not use the key of an organisation. */
function assertUser(caller: Caller): void {
  if (users.includes(caller.clientId) && caller.delegation === undefined) return;
  throw new AppError('forbidden', genericCode('forbidden'), 'this service may not use issuer keys');
}
