import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { MembershipService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import type { KeyChain, Signer } from '../../chain/sealing/ports.ts';
import { failure } from '../../errors.ts';

/** Proves possession of a signing key for one register: the newest key, or the rotation key after a given one. */
export function membershipHandlers(options: {
  readonly validatorId: string;
  readonly signer: Signer & KeyChain;
}): RpcHandlers<typeof MembershipService.method> {
  const { validatorId, signer } = options;
  return {
    async provePossession(request) {
      const registerId = findRegisterId(request.registerId);
      if (registerId === undefined) throw failure('INVALID_REQUEST', { message: 'registerId is malformed' });
      const after = request.afterPublicKey;
      const { publicKey } = after === '' ? signer.newestKey : await signer.nextKey(after);
      const signature = await signer.sign({ kind: 'possession', registerId }, publicKey);
      return { validatorId, publicKey, algorithm: 'ED25519', signature };
    },
  };
}
