import { encodeHex } from '#core/encoding/hex.ts';
import { isAppError } from '#core/errors/errors.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import type { CommitBundle, SealedTransaction, Transport } from '../transport/transport.ts';

interface FetchOptions {
  readonly transport: Pick<Transport, 'fetchRecords' | 'fetchCommit'>;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  /** The peer's answer is malformed. */
  reportFault(validatorId: string, reason: string): void;
}

/** Records of one register, by their expected leaf hash. */
interface RecordRequest {
  readonly registerId: string;
  /** Leaf hash in lower hex by transaction id. */
  readonly hashes: ReadonlyMap<string, string>;
}

/** Bound of ids in one request. */
const maxRequested = 1_000;
const answerWithinMs = 5_000;
/** Error codes of answers that are malformed or out of bounds. */
const malformedCodes: readonly string[] = ['INVALID_ENVELOPE', 'UNDECODABLE_MESSAGE'];

/** Requests records and commits from other validators in turn, each with a deadline. A peer without an answer is not an error. */
export class Fetcher {
  readonly #options: FetchOptions;
  #calls = 0;

  constructor(options: FetchOptions) {
    this.#options = options;
  }

  /** The records that any source had, by transaction id; only those with the expected leaf hash. */
  async records(request: RecordRequest, sources: Iterable<string>): Promise<Map<string, SealedTransaction>> {
    const found = new Map<string, SealedTransaction>();
    const byHash = new Map([...request.hashes].map(([txId, hash]) => [hash, txId]));
    for (const source of sources) {
      let before = -1;
      while (found.size < request.hashes.size && found.size !== before) {
        before = found.size;
        const missing = [...request.hashes.keys()].filter((txId) => !found.has(txId)).slice(0, maxRequested);
        for (const each of await this.fetchRecords(source, request.registerId, missing)) {
          const txId = byHash.get(encodeHex(recordLeaf(each.record)));
          if (txId !== undefined) found.set(txId, each);
        }
      }
      if (found.size === request.hashes.size) break;
    }
    return found;
  }

  /**
   * The records that a peer returns for transaction ids: each at most once, and no others. The record of an id may differ from
   * the local one.
   */
  async fetchRecords(
    from: string,
    registerId: string,
    txIds: readonly string[],
  ): Promise<readonly SealedTransaction[]> {
    const answer = await this.#askRecords(from, registerId, txIds);
    const asked = new Set(txIds);
    const fetchRecords = answer.filter(({ record }) => asked.delete(idOf(record) ?? ''));
    if (fetchRecords.length < answer.length) this.#options.reportFault(from, 'records');
    return fetchRecords;
  }

  commit(from: string, registerId: string, height: number): Promise<CommitBundle | undefined> {
    return this.#within(from, (signal) =>
      this.#options.transport.fetchCommit(from, registerId, height, signal),
    );
  }

  async #askRecords(from: string, registerId: string, txIds: readonly string[]) {
    const answer = await this.#within(from, (signal) =>
      this.#options.transport.fetchRecords(from, registerId, txIds, signal),
    );
    return answer ?? [];
  }

  async #within<T>(from: string, ask: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { scheduler, log } = this.#options;
    const controller = new AbortController();
    this.#calls += 1;
    const key = `fetch/${this.#calls}`;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    scheduler.set(key, answerWithinMs, () => {
      controller.abort();
      resolve(undefined);
    });
    try {
      return await Promise.race([ask(controller.signal), late]);
    } catch (error) {
      if (isAppError(error) && malformedCodes.includes(error.code))
        this.#options.reportFault(from, 'envelope');
      log.debug({ err: error, from }, 'a validator did not answer in time');
      return undefined;
    } finally {
      scheduler.clear(key);
    }
  }
}

function idOf(record: Uint8Array): string | undefined {
  try {
    return parseRecord(record).txId;
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
