import type { Snapshot } from './snapshot.ts';

type Freshness = 'Fresh' | 'Stale';

const dayMs = 86_400_000;
/** Of a list without a next update. */
const longestAgeMs = 90 * dayMs;

/** A list is stale from its next update on, or 90 days after its issue when it names none. */
export function freshnessOf(
  { listIssueAtMs, nextUpdateAtMs }: Pick<Snapshot, 'listIssueAtMs' | 'nextUpdateAtMs'>,
  nowMs: number,
): Freshness {
  return nowMs < (nextUpdateAtMs ?? listIssueAtMs + longestAgeMs) ? 'Fresh' : 'Stale';
}
