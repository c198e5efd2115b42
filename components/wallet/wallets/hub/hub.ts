import { isWalletAddress } from '#core/crypto/address.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { HOLDER_EVENTS } from '#core/events/holder-events.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Reader } from '#kit/db/db.ts';
import type { HubDeclaration, Subscription } from '#kit/hub/hub.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import type { AuthorityDeps } from '../../grants/authority.ts';
import { listUsableWallets } from '../../signing/usable-wallets.ts';
import { findWallet } from '../records/store.ts';
import { personOfWallet } from '../records/wallet.ts';
import { personGroup, personOfGroup, signalsOf, walletGroup, walletOfGroup } from './signals.ts';

type HubDeps = Pick<AuthorityDeps, 'db' | 'clock'>;

/** Path of the wallet hub. */
export const walletHubPath = '/hubs/wallet';

/**
 * The hub of holders: credentials of wallets, and devices of people. A connection belongs to the group of its person
 * from its start, which has the events of the person's own wallets.
 */
export function walletHub(deps: HubDeps): HubDeclaration<WalletDatabase> {
  const { read } = deps.db;
  return {
    path: walletHubPath,
    subscriptions: [ofWallet(deps)],
    groupsOf: ({ platformUserId }) => (platformUserId === undefined ? [] : [personGroup(platformUserId)]),
    log: {
      db: read,
      subject: SUBJECTS.walletEvents,
      signalsOf: async (events, isHeld) => signalsOf(events, isHeld),
      filterOf: async (group) => ({ key: await keyOf(read, group), kinds: HOLDER_EVENTS }),
    },
  };
}

function ofWallet(deps: HubDeps): Subscription {
  return {
    subscribe: 'SubscribeToWallet',
    unsubscribe: 'UnsubscribeFromWallet',
    groupOf: (text) => (isWalletAddress(text) ? walletGroup(text) : undefined),
    authorityOf: ({ platformUserId, organizationId, roles }) =>
      JSON.stringify([platformUserId, organizationId, roles]),
    judge: (caller, address) => assertUsableBy(deps, caller, address),
  };
}

/** The key of the rows for a group: those for a person's wallet have the person. */
async function keyOf(read: Reader<WalletDatabase>, group: string): Promise<string> {
  const person = personOfGroup(group);
  if (person !== undefined) return person;
  const address = walletOfGroup(group);
  const wallet = await findWallet(read, address);
  return (wallet && personOfWallet(wallet)) ?? address;
}

async function assertUsableBy(deps: HubDeps, caller: Caller, address: string): Promise<void> {
  const usable = await listUsableWallets(deps, caller, undefined);
  if (usable.some((wallet) => wallet.address === address)) return;
  throw new AppError('forbidden', genericCode('forbidden'), 'The wallet is not yours.');
}
