import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { RpcContext, RpcHandlers } from '#kit/rpc/rpc.ts';
import type { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { failure } from '../../errors.ts';
import { getVisibleRegister, registerNotFound } from '../reports/register-path.ts';
import { assertMaySeal, buildLocally } from './build.ts';
import { findLocal, type RegisterAccess } from './register-access.ts';
import { listWaiting } from './waiting.ts';
import { wireBuilt } from './wire.ts';

type Methods = Pick<typeof ValidatorAdminService.method, 'listWaiting' | 'buildDocket'>;

export interface PreviewRpcDeps extends Pick<RegisterAccess, 'validatorId' | 'getRegister' | 'isSubscribed'> {
  readonly clock: Clock;
}

const maxListed = 100;
const maxOffset = 1_000_000;

/** A validator that is no member passes on the caller's token; this member authorises the caller itself. */
export function previewHandlers(deps: PreviewRpcDeps): RpcHandlers<Methods> {
  const registerFor = async (registerId: string, caller: Caller) => {
    const id = await getVisibleRegister(deps, caller, registerId);
    const register = findLocal(deps, id);
    if (register === undefined) throw registerNotFound();
    return register;
  };
  return {
    async listWaiting({ registerId, offset, limit }, context) {
      const register = await registerFor(registerId, subjectOf(context));
      const window = { offset: Math.min(offset, maxOffset), limit: Math.min(limit, maxListed) };
      const { transactions, total } = listWaiting(register, window);
      return {
        transactions: transactions.map(({ record, addedAtMs, expiresAtMs }) => ({
          record,
          addedAtMs: BigInt(addedAtMs),
          expiresAtMs: BigInt(expiresAtMs),
        })),
        total,
      };
    },
    async buildDocket({ registerId, maxTransactions, validatorAddress, seal }, context) {
      const caller = subjectOf(context);
      const register = await registerFor(registerId, caller);
      if (seal) assertMaySeal(caller);
      return wireBuilt(await buildLocally(register, { maxTransactions, validatorAddress, seal }, deps.clock));
    },
  };
}

function subjectOf({ subject }: RpcContext): Caller {
  if (subject !== undefined) return subject;
  throw failure('UNAUTHORIZED');
}
