import type { MessageInitShape } from '@bufbuild/protobuf';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type {
  AttestationKeySchema,
  PublicKeySchema,
  WalletService,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { invalid } from '../errors.ts';
import { subjectOf } from '../grants/subject.ts';
import { findOrganizationWallet, listByAddresses } from '../wallets/records/store.ts';
import { algorithmOf, type Wallet } from '../wallets/records/wallet.ts';
import { type AttestationKey, findAttestationKey } from './attestation-keys.ts';
import { type SignDeps, signAs } from './sign.ts';
import { listUsableWallets } from './usable-wallets.ts';

type Methods = Pick<
  (typeof WalletService)['method'],
  'findWallets' | 'listSubjectWallets' | 'signDigest' | 'findAttestationKeys' | 'findOrganizationWallet'
>;

const maxAddresses = 256;
/** Above the size of a roster; each key may require decrypting a wallet. */
const maxAttestationKeys = 64;

/** Handlers for the other services of the installation; `x-subject-token` carries the authority of a person. */
export function walletHandlers(deps: SignDeps): RpcHandlers<Methods> {
  return {
    findWallets: async ({ addresses }) => {
      if (addresses.length > maxAddresses) {
        throw invalid(`at most ${maxAddresses} addresses at a time`);
      }
      const wallets = await listByAddresses(deps.db.read, addresses);
      return { wallets: wallets.map(presentKey) };
    },
    listSubjectWallets: async ({ derivationContext }, context) => {
      const subject = subjectOf(deps, context, 'wallets:sign');
      const wallets = await listUsableWallets(deps, subject, derivationContext);
      return { wallets: wallets.map(presentKey) };
    },
    signDigest: async (request, context) => {
      const signed = await signAs(deps, subjectOf(deps, context, 'wallets:sign'), request.walletAddress, {
        data: request.digest,
        preHashed: true,
        derivationPath: request.derivationContext,
        algorithm: undefined,
        hybridMode: false,
      });
      const key = {
        publicKey: encodeBase64(signed.publicKey),
        algorithm: signed.algorithm,
        walletAddress: signed.keyAddress,
      };
      return { signature: signed.signature, key };
    },
    findAttestationKeys: async ({ wallets }) => {
      if (wallets.length > maxAttestationKeys) {
        throw invalid(`at most ${maxAttestationKeys} wallets at a time`);
      }
      const found = await Promise.all(
        wallets.map(async (wallet) => ({ wallet, key: await findAttestationKey(deps, wallet) })),
      );
      return {
        keys: found.flatMap(({ wallet, key }) => (key === undefined ? [] : presentKeyOf(wallet, key))),
      };
    },
    findOrganizationWallet: async ({ organizationId }) => {
      const wallet = await findOrganizationWallet(deps.db.read, organizationId);
      return wallet?.status === 'Active' ? { wallet: presentKey(wallet) } : {};
    },
  };
}

function presentKeyOf(wallet: string, found: AttestationKey): MessageInitShape<typeof AttestationKeySchema> {
  const { walletAddress, derivationContext, algorithm, keyAddress } = found;
  const key = { publicKey: encodeBase64(found.publicKey), algorithm, walletAddress: keyAddress };
  return { wallet, walletAddress, derivationContext, key };
}

function presentKey(wallet: Wallet): MessageInitShape<typeof PublicKeySchema> {
  const { address, keyType, publicKey } = wallet;
  return { publicKey: encodeBase64(publicKey), algorithm: algorithmOf(keyType), walletAddress: address };
}
