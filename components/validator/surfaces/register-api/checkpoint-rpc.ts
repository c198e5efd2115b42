import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { CheckpointService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { failure } from '../../errors.ts';
import { type CosignDeps, cosign } from './cosign.ts';

/** The RPC by which the register service obtains cosignatures for a checkpoint. */
export function checkpointHandlers(deps: CosignDeps): RpcHandlers<typeof CheckpointService.method> {
  return {
    async cosign({ registerId: text, size, rootHash }) {
      const registerId = findRegisterId(text);
      if (registerId === undefined || rootHash.length !== 32 || size > BigInt(Number.MAX_SAFE_INTEGER))
        throw failure('INVALID_REQUEST', { message: 'registerId, size or rootHash is malformed' });
      const { timeSeconds, signature } = await cosign(deps, { registerId, size: Number(size), rootHash });
      return { timeSeconds: BigInt(timeSeconds), signature };
    },
  };
}
