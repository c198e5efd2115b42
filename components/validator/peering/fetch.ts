import { encodeHex } from '#core/encoding/hex.ts';
import { isAppError } from '#core/errors/errors.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import type { CommitBundle, SealedTransaction, Transport } from './transport.ts';

export interface FetchOptions {
  readonly transport: Pick<Transport, 'fetchRecords' | 'fetchCommit'>;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  /** It answered with what is no answer. */
  charge(validatorId: string, reason: string): void;
}

/** Records of one register by the leaf hash that they must have. */
export interface Wanted {
  readonly registerId: string;
  /** Leaf hash in lower hex by transaction id. */
  readonly hashes: ReadonlyMap<string, string>;
}

/** Ids in one question. */
const mostAsked = 1_000;
const answerWithinMs = 5_000;
/** What no honest validator answers: no message, or one that is not within its bounds. */
const noAnswers: readonly string[] = ['INVALID_ENVELOPE', 'UNDECODABLE_MESSAGE'];

/** Asks other validators, one after the other, each with a deadline; that one cannot answer is not an error. */
export class Fetcher {
  readonly #options: FetchOptions;
  #calls = 0;

  constructor(options: FetchOptions) {
    this.#options = options;
  }

  /** The records that somebody had, by transaction id; only such as have the leaf hash that is wanted. */
  async records(wanted: Wanted, sources: Iterable<string>): Promise<Map<string, SealedTransaction>> {
    const found = new Map<string, SealedTransaction>();
    const byHash = new Map([...wanted.hashes].map(([txId, hash]) => [hash, txId]));
    for (const source of sources) {
      let before = -1;
      while (found.size < wanted.hashes.size && found.size !== before) {
        before = found.size;
        const missing = [...wanted.hashes.keys()].filter((txId) => !found.has(txId)).slice(0, mostAsked);
        for (const each of await this.given(source, wanted.registerId, missing)) {
          const txId = byHash.get(encodeHex(recordLeaf(each.record)));
          if (txId !== undefined) found.set(txId, each);
        }
      }
      if (found.size === wanted.hashes.size) break;
    }
    return found;
  }

  /**
   * What a validator gives for transaction ids: each of them once at most, and nothing else. Of one id it may have another
   * record than is known here.
   */
  async given(
    from: string,
    registerId: string,
    txIds: readonly string[],
  ): Promise<readonly SealedTransaction[]> {
    const answer = await this.#askRecords(from, registerId, txIds);
    const asked = new Set(txIds);
    const given = answer.filter(({ record }) => asked.delete(idOf(record) ?? ''));
    if (given.length < answer.length) this.#options.charge(from, 'records');
    return given;
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
      if (isAppError(error) && noAnswers.includes(error.code)) this.#options.charge(from, 'envelope');
      log.debug({ err: error, from }, 'a validator did not answer');
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
