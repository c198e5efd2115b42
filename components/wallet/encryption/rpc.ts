import type { MessageInitShape } from '@bufbuild/protobuf';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type {
  EncryptionKeySchema,
  WalletService,
  WrappedKey as WireKey,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { invalid } from '../errors.ts';
import { subjectOf } from '../grants/subject.ts';
import { listByAddresses } from '../wallets/records/store.ts';
import type { Wallet } from '../wallets/records/wallet.ts';
import { keyId } from './key-id.ts';
import { type UnwrapDeps, unwrapAs, type WrappedKey, wipeKeys } from './unwrap.ts';

type Methods = Pick<(typeof WalletService)['method'], 'findEncryptionKeys' | 'unwrapKeys'>;

const maxAddresses = 256;
const maxKeys = 256;

/** Handlers for encrypted workflows: content keys leave this service, private keys do not. */
export function encryptionHandlers(deps: UnwrapDeps): RpcHandlers<Methods> {
  return {
    findEncryptionKeys: async ({ addresses }) => {
      if (addresses.length > maxAddresses) throw invalid(`at most ${maxAddresses} addresses at a time`);
      const wallets = await listByAddresses(deps.db.read, addresses);
      return { keys: wallets.flatMap(presentKey) };
    },
    unwrapKeys: async ({ wallet, keys }, context) => {
      if (keys.length === 0 || keys.length > maxKeys) throw invalid(`one to ${maxKeys} keys at a time`);
      const subject = subjectOf(deps, context, 'wallets:decrypt');
      const request = { wallet, keys: keys.map(wrappedKeyOf), service: context.peer.clientId };
      const answers = await unwrapAs(deps, subject, request);
      return {
        keys: answers.map((answer) => ({
          result:
            'contentKey' in answer
              ? { case: 'contentKey' as const, value: answer.contentKey }
              : { case: 'refusal' as const, value: answer.refusal },
        })),
        [Symbol.dispose]: () => wipeKeys(answers),
      };
    },
  };
}

function wrappedKeyOf({ kid, alg, epk, apu, apv, encryptedKey }: WireKey): WrappedKey {
  return { kid, alg, epk, apu, apv, encryptedKey };
}

function presentKey(wallet: Wallet): MessageInitShape<typeof EncryptionKeySchema>[] {
  const { address, keyType, kind } = wallet;
  if (kind === 'System') return [];
  const common = { walletAddress: address, status: keyStatusOf(wallet) };
  if (keyType === 'RSA') {
    const publicKey = encodeBase64(wallet.publicKey);
    return [{ ...common, kid: keyId(address, 'primary'), algorithm: 'RSA-4096', publicKey }];
  }
  if (wallet.encryptionKey === undefined) return [];
  const algorithm = keyType === 'ED25519' ? 'X25519' : keyType;
  const publicKey = encodeBase64(wallet.encryptionKey);
  return [{ ...common, kid: keyId(address, 'payload-encryption'), algorithm, publicKey }];
}

/** A revoked key is revoked for good, whatever the state of its wallet is. */
function keyStatusOf({ status, keyStatus }: Wallet): string {
  if (keyStatus === 'Revoked') return keyStatus;
  return status === 'Active' ? (keyStatus ?? status) : status;
}
