import { AppError } from '#core/errors/errors.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Database } from '#kit/db/db.ts';
import type { RpcContext, RpcHandlers } from '#kit/rpc/rpc.ts';
import type { LedgerService } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { findSegmentHead, loadFilter, readFilter, type SegmentHead } from '../segments/store.ts';
import { frontierOf } from '../writing/chain.ts';

type ReadKeys = RpcHandlers<(typeof LedgerService)['method']>['readKeys'];
type Databases = Pick<Database<RegisterSchema>, 'read' | 'transact'>;

const maxPartBytes = 1024 * 1024;
/** Streams that read keys at the same time: each reads up to a whole segment. Further ones wait. */
const maxReading = 2;
/** Streams that wait for their turn. */
const maxWaiting = 200;

/** Limits how many streams read keys at the same time. */
class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #callers = new Set<string>();
  #reading = 0;

  /** Resolves with the function that ends the turn. Throws AppError unavailable when the caller has a stream already. */
  async take(caller: string, signal: AbortSignal): Promise<() => void> {
    if (this.#callers.has(caller) || this.#waiting.length >= maxWaiting) throw refusal('KEYS_BUSY');
    this.#callers.add(caller);
    if (this.#reading < maxReading) this.#reading += 1;
    else await this.#wait(caller, signal);
    return () => {
      this.#callers.delete(caller);
      this.#next();
    };
  }

  async #wait(caller: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const mine = () => resolve(true);
    const aborted = () => resolve(false);
    this.#waiting.push(mine);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    const isMine = await promise;
    signal.removeEventListener('abort', aborted);
    if (isMine && !signal.aborted) return;
    const at = this.#waiting.indexOf(mine);
    if (at === -1) this.#next();
    else this.#waiting.splice(at, 1);
    this.#callers.delete(caller);
    throw signal.reason;
  }

  #next(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#reading -= 1;
    else next();
  }
}

/** Handles ReadKeys: sends the keys of a register as Bloom filters, one for each segment. */
export function createReadKeys(database: Databases): ReadKeys {
  const turns = new Turns();
  return async function* readKeys({ registerId: text }, { peer, signal }: RpcContext) {
    const registerId = findRegisterId(text);
    if (registerId === undefined) throw refusal('REGISTER_NOT_FOUND');
    const endTurn = await turns.take(peer.clientId, signal);
    try {
      // The head is read first: the keys read after it include all keys of the dockets that it counts.
      const head = await findSegmentHead(database.read, registerId);
      if (head === undefined) throw refusal('REGISTER_NOT_FOUND');
      yield { part: { case: 'begin' as const, value: presentHead(head) } };
      for (let segment = 0; segment <= head.segment && !signal.aborted; segment += 1) {
        const filter =
          segment < head.segment
            ? await loadFilter(database, head.registerNo, segment)
            : await readOpenSegment(database, head);
        yield* partsOf(segment, filter);
      }
      await assertNotRestored(database, registerId, head);
      yield { part: { case: 'end' as const, value: {} } };
    } finally {
      endTurn();
    }
  };
}

function presentHead(head: SegmentHead) {
  return {
    height: BigInt(head.height),
    logRoot: head.height === 0 ? new Uint8Array() : frontierOf(head).root(),
    transactionCount: BigInt(head.transactionCount),
    filters: head.segment + 1,
  };
}

/** Throws AppError internal when the segment has fewer transactions than the head counted. */
async function readOpenSegment({ read }: Databases, head: SegmentHead): Promise<Buffer> {
  const { filter, transactions } = await readFilter(read, head);
  if (transactions < head.segmentCount) throw inconsistent(head);
  return filter;
}

/** A database that was restored meanwhile may lack keys that the head counted. */
async function assertNotRestored({ read }: Databases, registerId: string, head: SegmentHead): Promise<void> {
  const after = await findSegmentHead(read, registerId);
  const isSame = after?.registerNo === head.registerNo && after.height >= head.height;
  if (!isSame || after.transactionCount < head.transactionCount) throw inconsistent(head);
}

function inconsistent({ registerNo }: SegmentHead): AppError {
  const message = `The keys of register ${registerNo} are fewer than its head counts.`;
  return new AppError('internal', 'INTERNAL_ERROR', message);
}

function* partsOf(number: number, filter: Buffer) {
  for (let at = 0; at < filter.length; at += maxPartBytes) {
    const value = {
      filter: number,
      sizeBytes: filter.length,
      bits: filter.subarray(at, at + maxPartBytes),
    };
    yield { part: { case: 'filter' as const, value } };
  }
}
