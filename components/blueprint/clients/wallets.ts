import type { UnwrappedKey, WrappedKey } from '#core/blueprint/payload/open.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { WalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { type PeerOptions, walletsUnavailable } from './peer.ts';

/** A public key of a wallet. */
interface WalletKey {
  readonly address: string;
  readonly algorithm: string;
  /** Standard base64. */
  readonly publicKey: string;
}

/** The key that content for a wallet is encrypted to. */
interface WalletEncryptionKey extends WalletKey {
  readonly kid: string;
  /** Active, Rotated, Locked or Deleted. */
  readonly status: string;
}

/** What this service asks the wallet service. */
export interface Wallets {
  /** Addresses that the subject of a token may sign with, its oldest active one first. */
  listOwn(subjectToken: string): Promise<readonly string[]>;
  /** Addresses of an organisation's wallet and of the key that attests for it; none without a wallet. */
  findOrganizationAddresses(organizationId: string): Promise<readonly string[]>;
  /** The key that a wallet signs with; undefined for an unknown wallet. */
  findKey(address: string): Promise<WalletKey | undefined>;
  /** Keys that content for wallets is encrypted to; unknown wallets are absent. */
  findEncryptionKeys(addresses: readonly string[]): Promise<readonly WalletEncryptionKey[]>;
  /** Signs a digest of 32 bytes as the person of a delegated token. Errors: forbidden, not_found, unauthenticated. */
  signDigest(address: string, digest: Uint8Array, subjectToken: string): Promise<Uint8Array>;
  /** Unwraps content keys of a wallet as the person of a token, in the order of the keys. */
  unwrapKeys(
    address: string,
    keys: readonly WrappedKey[],
    subjectToken: string,
  ): Promise<readonly UnwrappedKey[]>;
}

/** The wallet service over gRPC; it connects on the first call. */
export function connectWallets(address: Endpoint, options: PeerOptions): Wallets & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-wallet');
  const client = createRpcClient(WalletService, { ...options, address, expect });
  return {
    listOwn: async (subjectToken) => {
      const primary = { derivationContext: '' };
      const { wallets } = await client
        .listSubjectWallets(primary, { subjectToken })
        .catch(walletsUnavailable);
      return wallets.map(({ walletAddress }) => walletAddress);
    },
    findOrganizationAddresses: async (organizationId) => {
      const { wallet } = await client.findOrganizationWallet({ organizationId }).catch(walletsUnavailable);
      if (wallet === undefined) return [];
      const { walletAddress } = wallet;
      const { keys } = await client
        .findAttestationKeys({ wallets: [walletAddress] })
        .catch(walletsUnavailable);
      return [walletAddress, ...keys.flatMap(({ key }) => (key === undefined ? [] : [key.walletAddress]))];
    },
    findKey: async (address) => {
      const { wallets } = await client.findWallets({ addresses: [address] }).catch(walletsUnavailable);
      const [found] = wallets;
      return found && { address, algorithm: found.algorithm, publicKey: found.publicKey };
    },
    findEncryptionKeys: async (addresses) => {
      if (addresses.length === 0) return [];
      const { keys } = await client
        .findEncryptionKeys({ addresses: [...addresses] })
        .catch(walletsUnavailable);
      return keys.map(({ walletAddress, kid, algorithm, publicKey, status }) => ({
        address: walletAddress,
        kid,
        algorithm,
        publicKey,
        status,
      }));
    },
    signDigest: async (walletAddress, digest, subjectToken) => {
      const request = { walletAddress, digest, derivationContext: '' };
      const { signature } = await client.signDigest(request, { subjectToken }).catch(walletsUnavailable);
      return signature;
    },
    unwrapKeys: async (wallet, keys, subjectToken) => {
      const request = { wallet, keys: [...keys] };
      const answer = await client.unwrapKeys(request, { subjectToken }).catch(walletsUnavailable);
      return answer.keys.map(({ result }) =>
        result.case === 'contentKey'
          ? { contentKey: result.value }
          : { refusal: result.case === 'refusal' ? result.value : 'DECRYPT_FAILED' },
      );
    },
    close: () => client.close(),
  };
}
