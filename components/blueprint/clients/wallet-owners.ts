import type { Endpoint } from '#kit/config/config.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { WalletOwnerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { type PeerOptions, walletsUnavailable } from './peer.ts';

interface Person {
  readonly platformUserId: string;
  readonly organizationId: string | undefined;
  readonly roles: readonly string[];
}

/** The people behind wallets, as the wallet service knows them. */
export interface WalletOwners {
  /** Addresses of the wallets that a person may sign with at present. */
  listPersonWallets(person: Person): Promise<readonly string[]>;
  /** The platform users whom wallets belong to, by address; wallets of no person are absent. */
  findOwners(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The wallet service over gRPC; it connects on the first call. */
export function connectWalletOwners(
  address: Endpoint,
  options: PeerOptions,
): WalletOwners & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-wallet');
  const client = createRpcClient(WalletOwnerService, { ...options, address, expect });
  return {
    listPersonWallets: async ({ platformUserId, organizationId, roles }) => {
      const request = { platformUserId, organizationId: organizationId ?? '', roles: [...roles] };
      const { addresses } = await client.listPersonWallets(request).catch(walletsUnavailable);
      return addresses;
    },
    findOwners: async (addresses) => {
      const { owners } = await client.findOwners({ addresses: [...addresses] }).catch(walletsUnavailable);
      return new Map(owners.map(({ address: wallet, platformUserId }) => [wallet, platformUserId]));
    },
    close: () => client.close(),
  };
}
