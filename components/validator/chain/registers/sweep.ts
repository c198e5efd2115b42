import type { LogRecord } from '../records/entries.ts';
import type { RegisterChain } from '../sealing/register-chain.ts';

/** Time after which an expired transaction is dropped, so that a docket with it can be decided first. */
const graceMs = 60_000;

/** Turns expired and inadmissible transactions into tombstones. */
export async function sweepExpired(
  registers: Iterable<RegisterChain>,
  nowMs: number,
  append: (...records: LogRecord[]) => Promise<number>,
): Promise<void> {
  for (const register of registers) {
    register.tombstones.sweep(nowMs);
    const dropped = register.pool.expired(nowMs - graceMs).flatMap(({ txId }) =>
      register.drop({
        registerId: register.id,
        txId,
        status: 'expired',
        code: 'VAL_TIME_003',
        message: 'The transaction expired before it was sealed',
        atMs: nowMs,
      }),
    );
    register.work.count('expired', dropped.length);
    dropped.push(...register.dropInadmissible());
    if (dropped.length > 0) await append(...dropped.map((value) => ({ kind: 'tombstone' as const, value })));
  }
}
