import { AppError } from '#core/errors/errors.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { HistoryService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { wireDocket } from '../clients.ts';
import { decodeTransaction } from '../log/entries.ts';
import type { Held, HeldRange } from '../log/recovery.ts';
import { rebuildDocket } from '../sealing/rebuild.ts';
import type { Register } from '../sealing/register.ts';

export interface HistoryDeps {
  registers(): Iterable<Pick<Register, 'id' | 'facts'>>;
  /** What the log still holds of a register from one docket on. */
  readHeld(registerId: string, range: HeldRange): Promise<Held>;
  /** Bytes of transactions that are held in memory at a time, about; 64 MiB when absent. */
  readonly mostBytes?: number;
}

const mebibyte = 1024 * 1024;

/** What a register service that lost dockets asks: how far it was, and what the log here holds of it. */
export function historyHandlers({
  registers: allRegisters,
  readHeld,
  mostBytes = 64 * mebibyte,
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
        throw new AppError('invalid', 'INVALID_REQUEST', 'A register and a docket number are needed');
      // One call reads the whole log: a second one would not be sooner done.
      if (isReading) throw busy();
      isReading = true;
      try {
        const read = (next: number) => readHeld(registerId, { from: next, mostBytes });
        yield* docketsHeld(read, Number(from), signal);
      } finally {
        isReading = false;
      }
    },
  };
}

/** Dockets in their order until the log has no further one whole. */
async function* docketsHeld(read: (from: number) => Promise<Held>, from: number, signal: AbortSignal) {
  for (let next = from; !signal.aborted; ) {
    const first = next;
    const held = await read(first);
    for (; !signal.aborted; next += 1) {
      const docket = docketOf(held, next);
      if (docket === undefined) break;
      yield docket;
    }
    if (held.isAll || next === first) return;
  }
}

/** Undefined when the log does not hold it whole. */
function docketOf({ decided, transactions }: Held, number: number) {
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
  return new AppError('unavailable', 'HISTORY_BUSY', 'The log is being read for somebody else', {
    retryAfterSeconds: 5,
  });
}
