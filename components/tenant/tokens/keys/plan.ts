export type KeyState = 'next' | 'current' | 'retired';

export interface KeyRow {
  readonly kid: string;
  readonly state: KeyState;
  readonly createdAtMs: number;
  readonly activatedAtMs: number | undefined;
  readonly retiredAtMs: number | undefined;
}

/** The changes to the key rows, applied in this order. */
interface KeyPlan {
  readonly remove: readonly string[];
  readonly retire: string | undefined;
  /** The published next key that becomes the current one; 'new' when there is none. */
  readonly promote: string | 'new' | undefined;
  readonly makeNext: boolean;
}

/** The longest token lifetime is 8 h; its key stays published for one hour more. */
const retiredPublishedMs = 9 * 3_600_000;
/** After this time every verifier has fetched a newly published key. */
const minPublishedMs = 600_000;

/** Keeps two keys published, so that verifiers know the next key long before the first token that it signs. */
export function planKeys(rows: readonly KeyRow[], nowMs: number, rotationMs: number): KeyPlan {
  const current = rows.find((row) => row.state === 'current');
  const next = rows.find((row) => row.state === 'next');
  const remove = rows
    .filter((row) => row.state === 'retired' && nowMs - (row.retiredAtMs ?? 0) >= retiredPublishedMs)
    .map((row) => row.kid);
  if (current === undefined) {
    return { remove, retire: undefined, promote: next?.kid ?? 'new', makeNext: true };
  }
  const due = nowMs - (current.activatedAtMs ?? current.createdAtMs) >= rotationMs;
  const ready = next !== undefined && nowMs - next.createdAtMs >= minPublishedMs;
  return due && ready
    ? { remove, retire: current.kid, promote: next.kid, makeNext: true }
    : { remove, retire: undefined, promote: undefined, makeNext: next === undefined };
}
