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
/** Streams that wait for their turn. */
const maxWaiting = 200;

interface ReadKeysLimits {
  /** Open streams: each holds a filter of some megabytes until the validator has read it. Further ones wait. */
  readonly streams: number;
  /** Filters that are read from the database at the same time. */
  readonly reading: number;
}

const defaultLimits: ReadKeysLimits = { streams: 24, reading: 2 };

/** Limits how many streams do something at the same time. */
class Turns {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves with the function that ends the turn. Throws AppError unavailable when too many wait, and the signal's reason. */
  async take(signal: AbortSignal): Promise<() => void> {
    if (this.#waiting.length >= maxWaiting) throw refusal('KEYS_BUSY');
    if (this.#taken < this.#most) this.#taken += 1;
    else await this.#wait(signal);
    return () => this.#next();
  }

  async #wait(signal: AbortSignal): Promise<void> {
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
    throw signal.reason;
  }

  #next(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken -= 1;
    else next();
  }
}

/** Handles ReadKeys: sends the keys of a register as Bloom filters, one for each segment. */
export function createReadKeys(database: Databases, limits = defaultLimits): ReadKeys {
  const callers = new Set<string>();
  const streams = new Turns(limits.streams);
  const reading = new Turns(limits.reading);

  /** A turn lasts for one filter: it must not depend on how fast the validator takes what was read. */
  async function readSegment(head: SegmentHead, segment: number, signal: AbortSignal): Promise<Buffer> {
    const endTurn = await reading.take(signal);
    try {
      return segment < head.segment
        ? await loadFilter(database, head.registerNo, segment)
        : await readOpenSegment(database, head);
    } finally {
      endTurn();
    }
  }

  async function* readRegister(registerId: string, signal: AbortSignal) {
    // The head is read first: the keys read after it include all keys of the dockets that it counts.
    const head = await findSegmentHead(database.read, registerId);
    if (head === undefined) throw refusal('REGISTER_NOT_FOUND');
    yield { part: { case: 'begin' as const, value: presentHead(head) } };
    for (let segment = 0; segment <= head.segment && !signal.aborted; segment += 1)
      yield* partsOf(segment, await readSegment(head, segment, signal));
    await assertNotRestored(database, registerId, head);
    yield { part: { case: 'end' as const, value: {} } };
  }

  return async function* readKeys({ registerId: text }, { peer: { clientId }, signal }: RpcContext) {
    const registerId = findRegisterId(text);
    if (registerId === undefined) throw refusal('REGISTER_NOT_FOUND');
    if (callers.has(clientId)) throw refusal('KEYS_BUSY');
    callers.add(clientId);
    try {
      const endStream = await streams.take(signal);
      try {
        yield* readRegister(registerId, signal);
      } finally {
        endStream();
      }
    } finally {
      callers.delete(clientId);
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
