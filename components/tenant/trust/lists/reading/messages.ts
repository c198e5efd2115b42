import type { ListFaultKind } from '../values/fault.ts';
import type { ReadList } from '../values/list.ts';
import type { Pin } from '../values/signers.ts';

/** What a thread is given. */
export interface ReadingTask {
  readonly document: Uint8Array;
  readonly pin: Pin;
}

/** What it answers, once. */
export type ReadingOutcome =
  | { readonly list: ReadList }
  | { readonly fault: ListFaultKind; readonly message: string };
