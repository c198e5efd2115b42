import type { Reader } from '#kit/db/db.ts';
import type { RpcHandlers, RpcServer } from '#kit/rpc/rpc.ts';
import { RecordService } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { getRegister } from '../../registers/state/access.ts';
import { findSealed } from '../sealed/store.ts';
import { keyed, type ReadDeps, txIdOf } from './read.ts';

interface RecordDeps extends Pick<ReadDeps, 'segments'> {
  readonly db: Reader<RegisterSchema>;
}

/** Services that may read the transactions of every register: each judges what it shows of them to a person. */
const readers: readonly string[] = ['service-blueprint', 'service-wallet'];

/** Validators read the definitions by which they judge. */
const mayRead = (clientId: string) => readers.includes(clientId) || clientId.startsWith('validator-');

export function recordHandlers(deps: RecordDeps): RpcHandlers<(typeof RecordService)['method']> {
  return {
    async getSealedTransaction({ registerId, transactionId }) {
      const register = await getRegister(deps.db, registerId);
      const row = await findSealed(deps.db, keyed(deps, register), txIdOf(transactionId));
      if (row === undefined) throw refusal('TX_NOT_FOUND');
      const { record, payload, payloadHashForm } = row;
      return { transaction: { record, payload, payloadHashForm } };
    },
  };
}

export function addRecordService(server: RpcServer, deps: RecordDeps): void {
  server.add(RecordService, recordHandlers(deps), {
    allow: ({ clientId }) => mayRead(clientId),
    requireToken: true,
  });
}
