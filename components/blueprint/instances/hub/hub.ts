import { isWalletAddress } from '#core/crypto/address.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Reader } from '#kit/db/db.ts';
import type { HubDeclaration } from '#kit/hub/hub.ts';
import type { WalletOwners } from '../../clients/wallet-owners.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { signalsOf, walletGroup, walletOfGroup } from './signals.ts';

/** Path of the blueprint hub. */
export const blueprintHubPath = '/hubs/blueprint';

/** The hub of workflows: steps of the instances that a wallet takes part in, and its operations. */
export function blueprintHub(
  db: Reader<BlueprintDatabase>,
  owners: Pick<WalletOwners, 'listPersonWallets'>,
): HubDeclaration<BlueprintDatabase> {
  return {
    path: blueprintHubPath,
    subscriptions: [
      {
        subscribe: 'SubscribeToWallet',
        unsubscribe: 'UnsubscribeFromWallet',
        groupOf: (text) => (isWalletAddress(text) ? walletGroup(text) : undefined),
        authorityOf: ({ platformUserId, organizationId, roles }) =>
          JSON.stringify([platformUserId, organizationId, roles]),
        judge: (caller, wallet) => assertOwnWallet(owners, caller, wallet),
      },
    ],
    log: {
      db,
      subject: SUBJECTS.blueprintEvents,
      signalsOf: async (events, isHeld) => signalsOf(events, isHeld),
      filterOf: (group) => ({ key: walletOfGroup(group) }),
    },
  };
}

/** The wallet service decides which wallets a person may use at present. */
async function assertOwnWallet(
  owners: Pick<WalletOwners, 'listPersonWallets'>,
  { platformUserId, organizationId, roles }: Caller,
  wallet: string,
): Promise<void> {
  const own =
    platformUserId === undefined
      ? []
      : await owners.listPersonWallets({ platformUserId, organizationId, roles });
  if (own.includes(wallet)) return;
  throw new AppError('forbidden', genericCode('forbidden'), 'The wallet is not yours.');
}
