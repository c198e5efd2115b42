import type { Endpoint } from '#kit/config/config.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { ServiceWalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { refusal } from '../errors.ts';
import { type PeerOptions, walletsUnavailable } from './peer.ts';

/** Wallets that this service itself owns, by name. */
export interface OwnWallets {
  /** Address of the wallet of a name, which is created when it does not exist. Errors: unavailable. */
  ensure(name: string): Promise<string>;
  /** Erases the keys of wallets, at most 64; unknown and erased ones are passed over. Errors: unavailable. */
  erase(names: readonly string[]): Promise<void>;
}

/** The wallet service over gRPC; it connects on the first call. */
export function connectOwnWallets(address: Endpoint, options: PeerOptions): OwnWallets & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-wallet');
  const client = createRpcClient(ServiceWalletService, { ...options, address, expect });
  return {
    ensure: async (name) => {
      const { wallet } = await client.ensureServiceWallet({ name }).catch(walletsUnavailable);
      if (wallet === undefined) throw refusal('WALLETS_UNAVAILABLE');
      return wallet.walletAddress;
    },
    erase: async (names) => {
      await client.eraseServiceWallets({ names: [...names] }).catch(walletsUnavailable);
    },
    close: () => client.close(),
  };
}
