import { AppError } from '#core/errors/errors.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { MembershipService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import type { Signer } from '../sealing/ports.ts';

/** Proof that this validator holds its key, for one register. */
export function membershipHandlers(options: {
  readonly validatorId: string;
  readonly signer: Signer;
}): RpcHandlers<typeof MembershipService.method> {
  const { validatorId, signer } = options;
  return {
    async provePossession(request) {
      const registerId = findRegisterId(request.registerId);
      if (registerId === undefined)
        throw new AppError('invalid', 'INVALID_REQUEST', 'registerId is malformed');
      const signature = await signer.sign({ kind: 'possession', registerId });
      return { validatorId, publicKey: signer.key.publicKey, algorithm: 'ED25519', signature };
    },
  };
}
