import { type JobOptions, startJob } from '#kit/clock/jobs.ts';
import type { PublicationIndex } from './follow.ts';

const everyMs = 10_000;

/** Reads what was published on any register shortly after the start and every 10 s; returns the function that stops it. */
export function startPublicationReading({
  index,
  ...options
}: { readonly index: Pick<PublicationIndex, 'readAll'> } & JobOptions): () => Promise<void> {
  const run = (signal: AbortSignal) => index.readAll(signal);
  return startJob({ name: 'publications', firstMs: 0, everyMs, run }, options).stop;
}
