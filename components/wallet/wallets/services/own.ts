import { randomUUID } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import { PRIMARY_SLOT } from '../../custody/contexts.ts';
import { createSeed } from '../../custody/material.ts';
import type { CreateDeps } from '../create.ts';
import { makeKeys } from '../records/make-keys.ts';
import { findServiceWallet, insertWallet } from '../records/store.ts';
import type { Wallet } from '../records/wallet.ts';

export type OwnDeps = Pick<CreateDeps, 'db' | 'kek' | 'clock'>;

const wordCount = 24;
const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function isServiceWalletName(name: string): boolean {
  return namePattern.test(name);
}

/**
 * The wallet of a service under a name. The first call creates it; every later or concurrent call returns the same
 * wallet. Its mnemonic is never returned: the wallet is stored and backed up with this service.
 */
export async function ownWallet(
  deps: OwnDeps,
  { clientId }: Pick<Caller, 'clientId'>,
  name: string,
): Promise<Wallet> {
  const existing = await findServiceWallet(deps.db.read, { clientId, name });
  if (existing !== undefined) return existing;
  const { material } = createSeed(wordCount, '');
  const keys = await makeKeys(deps.kek, 'ED25519', material, PRIMARY_SLOT);
  const wallet: Wallet = {
    id: randomUUID(),
    address: keys.address,
    kind: 'Service',
    ownerUserId: undefined,
    ownerOrganizationId: undefined,
    systemIdentity: undefined,
    ownerService: clientId,
    serviceName: name,
    title: name,
    description: undefined,
    keyType: 'ED25519',
    slot: PRIMARY_SLOT,
    publicKey: keys.publicKey,
    encryptionKey: keys.encryptionKey,
    status: 'Active',
    createdBy: clientId,
    createdAtMs: deps.clock.nowMs(),
  };
  return deps.db.transact(async (tx) => {
    if (await insertWallet(tx, wallet, keys.secret)) return wallet;
    // A concurrent call created the wallet first; its wallet is returned.
    return (await findServiceWallet(tx, { clientId, name })) ?? wallet;
  });
}
