import { encodeBase64 } from '#core/encoding/base64.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { ServiceWalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { Keyring } from '../../custody/keyring.ts';
import { invalid, refusal } from '../../errors.ts';
import { changeWallet, eraseSecret, lockWallet } from '../records/changes/store.ts';
import { findServiceWallet } from '../records/store.ts';
import { algorithmOf } from '../records/wallet.ts';
import { isServiceWalletName, type OwnDeps, ownWallet } from './own.ts';

type Methods = (typeof ServiceWalletService)['method'];

interface ServiceWalletDeps extends OwnDeps {
  readonly keyring: Pick<Keyring, 'forget'>;
}

const maxNames = 64;

/** Only the blueprint service has wallets over gRPC: it rehearses workflows in the place of their parties. */
export function mayOwnWallets(peer: RpcPeer): boolean {
  return peer.clientId === 'service-blueprint';
}

/** Handlers about wallets that the calling service itself owns; no other one is in their reach. */
export function serviceWalletHandlers(deps: ServiceWalletDeps): RpcHandlers<Methods> {
  return {
    ensureServiceWallet: async ({ name }, { peer }) => {
      assertName(name);
      const wallet = await ownWallet(deps, peer, name);
      if (wallet.status !== 'Active') throw refusal('WALLET_DELETED');
      const { address, keyType, publicKey } = wallet;
      const key = { publicKey: encodeBase64(publicKey), algorithm: algorithmOf(keyType) };
      return { wallet: { ...key, walletAddress: address } };
    },
    eraseServiceWallets: async ({ names }, { peer }) => {
      if (names.length > maxNames) throw invalid(`at most ${maxNames} names at a time`);
      for (const name of names) {
        assertName(name);
        await erase(deps, { clientId: peer.clientId, name });
      }
      return {};
    },
  };
}

function assertName(name: string): void {
  if (!isServiceWalletName(name)) throw invalid('name: 1 to 63 lower-case letters, digits and hyphens');
}

async function erase(
  deps: ServiceWalletDeps,
  of: { readonly clientId: string; readonly name: string },
): Promise<void> {
  const found = await findServiceWallet(deps.db.read, of);
  if (found === undefined) return;
  await deps.db.transact(async (tx) => {
    const wallet = await lockWallet(tx, found.id);
    if (wallet.status === 'Deleted') return;
    await eraseSecret(tx, wallet.id);
    await changeWallet(tx, wallet.id, { status: 'Deleted' });
  });
  deps.keyring.forget(found.id);
}
