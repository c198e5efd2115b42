import { estimateKeys } from '#core/ledger/key-filter.ts';
import { failure } from '../../errors.ts';

/** A part of the keys that the register service sends, in the order of its stream. */
export type KeyPart =
  | {
      readonly kind: 'begin';
      /** Number of dockets whose keys follow. */
      readonly height: number;
      /** Lower hex of the log root over these dockets; empty before docket 0. */
      readonly logRoot: string;
      readonly transactionCount: number;
      readonly filters: number;
    }
  | {
      readonly kind: 'filter';
      readonly filter: number;
      /** Size of the whole filter. */
      readonly sizeBytes: number;
      readonly bits: Uint8Array;
    }
  | { readonly kind: 'end' };

/** The keys of all dockets of a register below a height, as the register service stored them. */
export interface KeySnapshot {
  readonly height: number;
  /** Lower hex; empty before docket 0. */
  readonly logRoot: string;
  readonly transactionCount: number;
  readonly filters: readonly Uint8Array[];
}

type Begin = Extract<KeyPart, { kind: 'begin' }>;
type FilterPart = Extract<KeyPart, { kind: 'filter' }>;

/** Filters hold at least the ids of the transactions. The estimate may be off by some percent, and by some keys. */
const leastShare = 0.8;
const tolerance = 8;

/**
 * Collects the stream of a snapshot.
 * @param reserve whether so many bytes of filters together are allowed
 * @throws AppError bad_gateway KEYS_MALFORMED for a stream that is truncated, out of order or larger than stated, or whose
 * filters hold fewer keys than the register has transactions; unavailable KEYS_TOO_LARGE; what the stream throws
 */
export async function collectKeys(
  parts: AsyncIterable<KeyPart>,
  reserve: (bytes: number) => boolean,
): Promise<KeySnapshot> {
  let begin: Begin | undefined;
  let isEnded = false;
  const filters = new FilterParts(reserve);
  for await (const part of parts) {
    if (isEnded || (part.kind === 'begin') !== (begin === undefined)) throw malformed('parts out of order');
    if (part.kind === 'begin') begin = part;
    else if (part.kind === 'filter') filters.add(part);
    else isEnded = true;
  }
  if (begin === undefined || !isEnded) throw malformed('the stream is truncated');
  const complete = filters.complete();
  if (complete.length !== begin.filters) throw malformed('a filter is missing');
  const { height, logRoot, transactionCount } = begin;
  if (filters.keys < transactionCount * leastShare - tolerance)
    throw malformed('the filters hold fewer keys than the register has transactions');
  return { height, logRoot, transactionCount, filters: complete };
}

/** The filters of a snapshot, of which the last one may be incomplete. */
class FilterParts {
  readonly #reserve: (bytes: number) => boolean;
  readonly #filters: Uint8Array[] = [];
  #totalBytes = 0;
  /** Bytes of the last filter that have arrived. */
  #filled = 0;
  #keys = 0;

  constructor(reserve: (bytes: number) => boolean) {
    this.#reserve = reserve;
  }

  /** Estimated number of keys in the complete filters. */
  get keys(): number {
    return this.#keys;
  }

  add({ filter: number, sizeBytes, bits }: FilterPart): void {
    if (this.#isComplete && number === this.#filters.length) this.#begin(sizeBytes);
    const filter = this.#filters.at(-1);
    const isNext = filter?.length === sizeBytes && number === this.#filters.length - 1;
    if (!isNext || bits.length === 0 || this.#filled + bits.length > sizeBytes)
      throw malformed('a part of a filter does not follow the part before it');
    filter.set(bits, this.#filled);
    this.#filled += bits.length;
    // Estimated filter by filter as they arrive: all of them at once would block the event loop.
    if (this.#isComplete) this.#keys += estimateKeys(filter);
  }

  /** Throws when the last filter is incomplete. */
  complete(): readonly Uint8Array[] {
    if (!this.#isComplete) throw malformed('a filter is incomplete');
    return this.#filters;
  }

  get #isComplete(): boolean {
    return this.#filled === (this.#filters.at(-1)?.length ?? 0);
  }

  #begin(sizeBytes: number): void {
    this.#totalBytes += sizeBytes;
    if (!this.#reserve(this.#totalBytes)) throw failure('KEYS_TOO_LARGE');
    this.#filters.push(new Uint8Array(sizeBytes));
    this.#filled = 0;
  }
}

function malformed(what: string) {
  return failure('KEYS_MALFORMED', { message: `The register service sent malformed keys: ${what}` });
}
