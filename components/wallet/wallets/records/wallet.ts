import type { Algorithm } from '#core/crypto/algorithm.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { KeyStatus, KeyType, WalletKind, WalletStatus } from '../../database/schema.ts';

/** Public facts of a wallet. Key material is stored in custody and is never part of it. */
export interface Wallet {
  readonly id: string;
  readonly address: string;
  readonly kind: WalletKind;
  readonly ownerUserId: string | undefined;
  readonly ownerOrganizationId: string | undefined;
  readonly systemIdentity: string | undefined;
  /** client id of the service that a Service wallet belongs to */
  readonly ownerService?: string | undefined;
  /** the name that the service gave the wallet */
  readonly serviceName?: string | undefined;
  readonly title: string;
  readonly description: string | undefined;
  readonly keyType: KeyType;
  /** slot of the key of `address` and `publicKey` */
  readonly slot: number;
  readonly publicKey: Buffer;
  readonly encryptionKey: Buffer | undefined;
  readonly status: WalletStatus;
  /** state of the key of a Derived wallet */
  readonly keyStatus?: KeyStatus | undefined;
  /** when the wallet was locked; undefined while it is Active */
  readonly lockedAtMs?: number | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

const algorithms = { ED25519: 'ED25519', NISTP256: 'NISTP256', RSA: 'RSA-4096' } as const satisfies Record<
  KeyType,
  Algorithm
>;

/** The algorithm name of a key type in everything that is signed or hashed. */
export function algorithmOf(keyType: KeyType): Algorithm {
  return algorithms[keyType];
}

/** The facts of a caller that decide which wallets are its own. */
export type WalletCaller = Pick<
  Caller,
  'kind' | 'clientId' | 'platformUserId' | 'organizationId' | 'roles' | 'delegation'
>;

/**
 * A wallet of a person belongs to the platform user, independent of the organisation of the token; a wallet of a
 * service to the client id, but not to its delegated tokens; a derived key of an organisation to its user while the
 * token is of that organisation.
 */
export function isOwner(wallet: Wallet, caller: WalletCaller): boolean {
  if (wallet.ownerService !== undefined)
    return (
      caller.kind === 'service' && caller.delegation === undefined && caller.clientId === wallet.ownerService
    );
  if (wallet.kind === 'Derived' && wallet.ownerOrganizationId !== caller.organizationId) return false;
  return wallet.ownerUserId !== undefined && wallet.ownerUserId === caller.platformUserId;
}

/** The person whose wallet it is; undefined for wallets of organisations, their derived keys included, and of services. */
export function personOfWallet(wallet: Pick<Wallet, 'kind' | 'ownerUserId'>): string | undefined {
  return wallet.kind === 'User' ? wallet.ownerUserId : undefined;
}

/** Whether the token is that of an Administrator of the organisation that owns the wallet. */
export function administers(wallet: Wallet, caller: Caller): boolean {
  const { ownerOrganizationId } = wallet;
  return ownerOrganizationId !== undefined && isAdministratorOf(ownerOrganizationId, caller);
}

export function isAdministratorOf(organizationId: string, caller: Caller): boolean {
  const ofOrganization = caller.kind === 'user' && caller.organizationId === organizationId;
  return ofOrganization && caller.roles.includes('Administrator');
}
