import type { MessageInitShape } from '@bufbuild/protobuf';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { RpcContext, RpcHandlers } from '#kit/rpc/rpc.ts';
import type { PublicKeySchema, SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { SystemKey } from './keys.ts';
import type { SigningCaller } from './rules.ts';
import {
  type SignControlDeps,
  signCheckpoint,
  signControl,
  signOwnership,
  systemKeyOf,
} from './sign-control.ts';
import { serveSigner } from './stream.ts';

type Methods = typeof SystemSignerService extends { readonly method: infer M } ? M : never;

/** Handlers of the signing component. They authorise the caller themselves, so that each refusal has an audit row. */
export function systemSignerHandlers(deps: SignControlDeps): RpcHandlers<Methods> {
  return {
    getSystemKey: async (request, context) => ({
      key: presentKey(await systemKeyOf(deps, callerOf(context), request.derivationPath)),
    }),
    signControl: async (request, context) => {
      const { signature, key } = await signControl(deps, callerOf(context), request);
      return { signature, key: presentKey(key) };
    },
    signOwnership: async (request, context) => {
      const { signature, key } = await signOwnership(deps, callerOf(context), request);
      return { signature, key: presentKey(key) };
    },
    signCheckpoint: async (request, context) => {
      const { signature, key } = await signCheckpoint(deps, callerOf(context), request);
      return { signature, key: presentKey(key) };
    },
    signConsensus: (requests, context) => serveSigner(deps, callerOf(context), requests),
  };
}

function presentKey({ signer, address }: SystemKey): MessageInitShape<typeof PublicKeySchema> {
  return { publicKey: encodeBase64(signer.publicKey), algorithm: signer.algorithm, walletAddress: address };
}

function callerOf({ peer, caller }: RpcContext): SigningCaller {
  return {
    spiffeId: peer.spiffeId,
    clientId: peer.clientId,
    subject: caller?.subject ?? '',
    service: caller?.kind === 'service',
    canSignSystem: caller?.canSignSystem ?? false,
  };
}
