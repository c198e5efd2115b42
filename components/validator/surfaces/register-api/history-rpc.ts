import type { AppError } from '#core/errors/errors.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { HistoryService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { decodeTransaction } from '../../chain/records/entries.ts';
import type { LoggedDockets, LoggedRange } from '../../chain/records/recovery.ts';
import { rebuildDocket } from '../../chain/sealing/rebuild.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { failure } from '../../errors.ts';
import { wireDocket } from '../../network/services/clients.ts';

interface HistoryDeps {
  registers(): Iterable<Pick<RegisterChain, 'id' | 'facts'>>;
  /** The dockets of a register that the log still holds, from one number on. */
  readLoggedDockets(registerId: string, range: LoggedRange): Promise<LoggedDockets>;
  /** Approximate bound of transaction bytes in memory; 64 MiB when absent. */
  readonly maxBytes?: number;
}

const mebibyte = 1024 * 1024;

/** The RPCs by which a register service that lost dockets gets back those that the log still holds. */
export function historyHandlers({
  registers: allRegisters,
  readLoggedDockets,
  maxBytes = 64 * mebibyte,
}: HistoryDeps): RpcHandlers<typeof HistoryService.method> {
  let isReading = false;
  return {
    async listHeights() {
      const registers = Array.from(allRegisters(), ({ id, facts }) => ({
        registerId: id,
        height: BigInt(facts.storedHeight),
      }));
      return { registers };
    },
    async *readDockets({ registerId: text, from }, { signal }) {
      const registerId = findRegisterId(text);
      if (registerId === undefined || from > BigInt(Number.MAX_SAFE_INTEGER))
        throw failure('INVALID_REQUEST', { message: 'registerId or from is malformed' });
      // One call reads the entire log, so a concurrent second one would only slow both down.
      if (isReading) throw busy();
      isReading = true;
      try {
        const read = (next: number) => readLoggedDockets(registerId, { from: next, maxBytes });
        yield* docketsHeld(read, Number(from), signal);
      } finally {
        isReading = false;
      }
    },
  };
}

/** Yields consecutive dockets until one is not completely in the log. */
async function* docketsHeld(
  read: (from: number) => Promise<LoggedDockets>,
  from: number,
  signal: AbortSignal,
) {
  for (let next = from; !signal.aborted; ) {
    const first = next;
    const loggedDockets = await read(first);
    for (; !signal.aborted; next += 1) {
      const docket = docketOf(loggedDockets, next);
      if (docket === undefined) break;
      yield docket;
    }
    if (loggedDockets.isAll || next === first) return;
  }
}

/** Undefined when the log does not hold the docket completely. */
function docketOf({ decided, transactions }: LoggedDockets, number: number) {
  const known = decided.get(number);
  const docket =
    known &&
    rebuildDocket(known.header, (txId) => {
      const placed = transactions.get(txId);
      return placed === undefined ? [] : [decodeTransaction(placed.transaction)];
    });
  return known && docket && wireDocket({ docket, certificate: known.certificate }, []);
}

function busy(): AppError {
  return failure('HISTORY_BUSY', { retryAfterSeconds: 5 });
}
