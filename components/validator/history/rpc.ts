import { AppError } from '#core/errors/errors.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { HistoryService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { wireDocket } from '../clients.ts';
import { decodeTransaction } from '../log/entries.ts';
import type { Held } from '../log/recovery.ts';
import { rebuildDocket } from '../sealing/rebuild.ts';
import type { Register } from '../sealing/register.ts';

export interface HistoryDeps {
  registers(): Iterable<Pick<Register, 'id' | 'facts'>>;
  /** What the log still holds of a register from one docket on. */
  readHeld(registerId: string, from: number): Promise<Held>;
}

/** What a register service that lost dockets asks: how far it was, and what the log here holds of it. */
export function historyHandlers(deps: HistoryDeps): RpcHandlers<typeof HistoryService.method> {
  let isReading = false;
  return {
    async listHeights() {
      const registers = Array.from(deps.registers(), ({ id, facts }) => ({
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
        const held = await deps.readHeld(registerId, Number(from));
        for (let number = Number(from); !signal.aborted; number += 1) {
          const docket = docketOf(held, number);
          if (docket === undefined) return;
          yield docket;
        }
      } finally {
        isReading = false;
      }
    },
  };
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
