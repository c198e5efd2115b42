import type { Endpoint } from '#kit/config/config.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import {
  type PublicKey,
  SystemSignerService,
  WalletService,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { Signed, WalletKey, Wallets } from './wallets.ts';

export interface PeerOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
}

interface WalletClient extends Wallets {
  close(): void;
}

const controlPath = 'platform:register-control';

/** Keys of wallets never change, so they are cached. */
const cachedKeys = 10_000;

function keyOf(key: PublicKey | undefined): WalletKey {
  return {
    publicKey: key?.publicKey ?? '',
    algorithm: key?.algorithm ?? '',
    walletAddress: key?.walletAddress ?? '',
  };
}

function signedOf(answer: { signature: Uint8Array; key?: PublicKey | undefined }): Signed {
  return { signature: answer.signature, key: keyOf(answer.key) };
}

/** The wallet service over gRPC. */
export function connectWallets(endpoint: Endpoint, options: PeerOptions): WalletClient {
  const expect = serviceSpiffeId(options.runtime.installation, 'service-wallet');
  const wallets = createRpcClient(WalletService, { address: endpoint, expect, ...options });
  const signer = createRpcClient(SystemSignerService, { address: endpoint, expect, ...options });
  const known = new Map<string, WalletKey>();
  let system: WalletKey | undefined;

  function remember(key: WalletKey): WalletKey {
    if (known.size >= cachedKeys) known.clear();
    known.set(key.walletAddress, key);
    return key;
  }

  return {
    async findKey(walletAddress) {
      const cached = known.get(walletAddress);
      if (cached !== undefined) return cached;
      const answer = await wallets.findWallets({ addresses: [walletAddress] });
      const [found] = answer.wallets;
      return found && remember(keyOf(found));
    },
    async subjectWallets(subjectToken) {
      const answer = await wallets.listSubjectWallets({}, { subjectToken });
      return answer.wallets.map(keyOf);
    },
    async attestationKeys(names) {
      const { keys } = await wallets.findAttestationKeys({ wallets: [...names] });
      return keys.map(({ wallet, walletAddress, derivationContext, key }) => ({
        wallet,
        walletAddress,
        derivationContext,
        keyAddress: keyOf(key).walletAddress,
      }));
    },
    async organizationWallet(organizationId) {
      const { wallet } = await wallets.findOrganizationWallet({ organizationId });
      return wallet && keyOf(wallet);
    },
    async signDigest({ subjectToken, walletAddress, digest, derivationContext }) {
      return signedOf(
        await wallets.signDigest({ walletAddress, digest, derivationContext }, { subjectToken }),
      );
    },
    async systemKey() {
      system ??= keyOf((await signer.getSystemKey({ derivationPath: controlPath })).key);
      return system;
    },
    async signControl(request) {
      return signedOf(await signer.signControl({ ...request, derivationPath: controlPath }));
    },
    async signOwnership(request) {
      return signedOf(await signer.signOwnership(request));
    },
    async signCheckpoint(registerId, body) {
      return signedOf(await signer.signCheckpoint({ registerId, body }));
    },
    close() {
      wallets.close();
      signer.close();
    },
  };
}
