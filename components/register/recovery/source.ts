import type { DocketBundle } from '../dockets/docket.ts';

/** Somebody who may hold dockets that are missing here: a validator, later another installation. */
export interface DocketSource {
  readonly name: string;
  /** How many dockets of each register the source says that there are, by register id. */
  heights(): Promise<ReadonlyMap<string, number>>;
  /** Dockets from a number on, in order, as far as the source has them. None of it is believed. */
  dockets(registerId: string, from: number, signal: AbortSignal): AsyncIterable<DocketBundle>;
}

/** Whom to ask at this moment. */
export type FindSources = () => Promise<readonly DocketSource[]>;
