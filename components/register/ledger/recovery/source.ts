import type { DocketBundle } from '../dockets/docket.ts';

/** A source that may hold dockets that are missing here: a validator, later another installation. */
export interface DocketSource {
  readonly name: string;
  /** The height of each register that the source reports, by register id. */
  heights(): Promise<ReadonlyMap<string, number>>;
  /** Dockets from a number on, in order, as far as the source has them. Untrusted. */
  dockets(registerId: string, from: number, signal: AbortSignal): AsyncIterable<DocketBundle>;
}

/** The sources that are available now. */
export type FindSources = () => Promise<readonly DocketSource[]>;
