import { createHash, createPublicKey } from 'node:crypto';
import type { Signer } from '#core/crypto/sign.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { clientIdOf } from '#core/identity/services.ts';
import type { Logger } from '#kit/log/log.ts';
import {
  type ContextName,
  contextSlot,
  HAIP_ISSUER_SIGNING,
  PRIMARY_SLOT,
  STATUS_LIST_SIGNING,
  slotPath,
  TENANT_CA_SIGNING,
} from '../../custody/contexts.ts';
import { refusal } from '../../errors.ts';
import { findOrganizationWallet, getWallet } from '../../wallets/records/store.ts';
import { assertUsable } from '../../wallets/records/usable.ts';
import type { Wallet } from '../../wallets/records/wallet.ts';
import type { SignDeps } from '../sign.ts';

export interface IssuerKeyDeps extends Pick<SignDeps, 'db' | 'keyring'> {
  readonly log: Logger;
}

/**
 * What a key signs: `issuer` credentials and certificate requests, `root` the certificates and the revocation list of the
 * organisation's own authority, `status-list` the status lists of its credentials. The keys differ, so that a credential
 * is never a certificate.
 */
export const KEY_USES = ['issuer', 'root', 'status-list'] as const;
type KeyUse = (typeof KEY_USES)[number];

interface UseRule {
  readonly context: ContextName;
  /** Client ids of the services that may use the key. */
  readonly users: readonly string[];
  /** A P-256 wallet signs with its primary key instead. */
  readonly primary?: true;
}

const [tenant, credential] = [clientIdOf('tenant'), clientIdOf('credential')];

const rules: Readonly<Record<KeyUse, UseRule>> = {
  issuer: { context: HAIP_ISSUER_SIGNING, users: [tenant, credential], primary: true },
  root: { context: TENANT_CA_SIGNING, users: [tenant] },
  'status-list': { context: STATUS_LIST_SIGNING, users: [credential] },
};

/** Which key of which wallet. */
interface IssuerKeyRequest {
  readonly address: string;
  readonly use: KeyUse;
  /** The organisation whose present wallet it must be; any when undefined. */
  readonly organizationId?: string | undefined;
}

/** A P-256 key of the wallet of an organisation. */
interface IssuerKey {
  readonly signer: Signer;
  /** `HaipCoKey`: slot 106, because the primary key of the wallet is not P-256; `CoKey`: the slot of another use */
  readonly source: 'Primary' | 'HaipCoKey' | 'CoKey';
  readonly walletAddress: string;
}

/**
 * The key of an organisation for its certificates, credentials or status lists, for the services that need it.
 * @throws AppError forbidden FORBIDDEN, not_found WALLET_NOT_FOUND, unprocessable CERT_KEY_NOT_ELIGIBLE, locked
 * WALLET_LOCKED, gone WALLET_DELETED
 */
export async function getIssuerKey(
  deps: IssuerKeyDeps,
  caller: Caller,
  request: IssuerKeyRequest,
): Promise<IssuerKey> {
  const rule = rules[request.use];
  assertUser(caller, rule);
  const wallet = await getRequested(deps, request);
  if (wallet.kind !== 'Organization' || wallet.keyType === 'RSA') throw refusal('CERT_KEY_NOT_ELIGIBLE');
  assertUsable(wallet, 'sign');
  const walletAddress = wallet.address;
  if (rule.primary && wallet.keyType === 'NISTP256') {
    const signer = await deps.keyring.signer(wallet, slotPath(PRIMARY_SLOT));
    return { signer, source: 'Primary', walletAddress };
  }
  const signer = await deps.keyring.signer(wallet, slotPath(contextSlot(rule.context)), 'NISTP256');
  return { signer, source: request.use === 'issuer' ? 'HaipCoKey' : 'CoKey', walletAddress };
}

/** A wallet that the named organisation does not own is answered like one that does not exist. */
async function getRequested(
  { db }: IssuerKeyDeps,
  { address, organizationId }: IssuerKeyRequest,
): Promise<Wallet> {
  if (organizationId === undefined) return getWallet(db.read, address);
  const wallet = await findOrganizationWallet(db.read, organizationId);
  if (wallet?.address !== address) throw refusal('WALLET_NOT_FOUND');
  return wallet;
}

/** Signs the digest of a certificate, a revocation list, a credential or a status list; r and s, 32 bytes each. */
export async function signAsIssuer(
  deps: IssuerKeyDeps,
  caller: Caller,
  request: IssuerKeyRequest,
  digest: Uint8Array,
): Promise<Uint8Array> {
  const { signer, source, walletAddress } = await getIssuerKey(deps, caller, request);
  const signature = signer.signDigest(digest);
  const { clientId } = caller;
  const { use } = request;
  deps.log.info(
    { securityAudit: 'wallet.issuer-sign', walletAddress, use, source, clientId },
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
function assertUser(caller: Caller, { users }: UseRule): void {
  if (users.includes(caller.clientId) && caller.delegation === undefined) return;
  throw new AppError('forbidden', genericCode('forbidden'), 'this service may not use this key');
}
