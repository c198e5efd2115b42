import { isRole } from '#core/identity/roles.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { WalletOwnerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { invalid } from '../../errors.ts';
import type { AuthorityDeps } from '../../grants/authority.ts';
import { listUsableWallets } from '../../signing/usable-wallets.ts';
import { listByAddresses } from '../records/store.ts';

type Methods = (typeof WalletOwnerService)['method'];

const maxAddresses = 256;

/** Only the blueprint service learns whose wallets are whose: it tells people of the steps that wait for them. */
export function mayReadOwners(peer: RpcPeer): boolean {
  return peer.clientId === 'service-blueprint';
}

/** Handlers about the people behind wallets. */
export function ownerHandlers(deps: Pick<AuthorityDeps, 'db' | 'clock'>): RpcHandlers<Methods> {
  return {
    listPersonWallets: async ({ platformUserId, organizationId, roles }) => {
      if (platformUserId === '') throw invalid('platform_user_id is required');
      const person = {
        kind: 'user',
        clientId: '',
        platformUserId,
        organizationId: organizationId === '' ? undefined : organizationId,
        roles: roles.filter(isRole),
      } as const;
      const wallets = await listUsableWallets(deps, person, undefined);
      return { addresses: wallets.map(({ address }) => address) };
    },
    findOwners: async ({ addresses }) => {
      if (addresses.length > maxAddresses) throw invalid(`at most ${maxAddresses} addresses at a time`);
      const wallets = await listByAddresses(deps.db.read, addresses);
      return {
        owners: wallets.flatMap(({ address, ownerUserId }) =>
          ownerUserId === undefined ? [] : [{ address, platformUserId: ownerUserId }],
        ),
      };
    },
  };
}
