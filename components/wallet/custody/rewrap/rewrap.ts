import { isAppError } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { rewrapSecret } from '../envelope.ts';
import type { KekProvider } from '../kek.ts';
import { countByKek, listWrapped, replaceWrapping, type WrappedKey } from './store.ts';

interface RewrapOptions {
  readonly db: Database<WalletDatabase>;
  readonly kek: KekProvider;
  readonly log: Logger;
  readonly telemetry: Pick<Telemetry, 'gauge'>;
  /** data keys read at a time; 100 when absent */
  readonly batch?: number;
}

interface Rewrapping {
  /** Wraps every data key under the current key, row by row; a later run continues after an interruption. */
  run(signal: AbortSignal): Promise<void>;
  /** @throws AppError internal KEK_UNKNOWN or Error while a data key is not under the current key */
  assertDone(): void;
}

const logEvery = 1_000;

/**
 * Moves data keys from the other listed key-encryption keys to the current one. Each row changes in a statement of its
 * own, so an interruption leaves every wallet readable under a listed key. Replicas may run at the same time.
 */
export function createRewrapping(options: RewrapOptions): Rewrapping {
  const { db, kek, log } = options;
  const gauge = options.telemetry.gauge('data_keys', 'Data keys of wallets by key-encryption key', [
    'kek_id',
  ]);
  const former = kek.ids.filter((id) => id !== kek.currentId);
  let problem: string | undefined;
  let reported = '';

  async function run(signal: AbortSignal): Promise<void> {
    const pending = countOf(await observe(), former);
    if (pending > 0) {
      log.info({ kekId: kek.currentId, pending }, 'wrapping data keys under the current key-encryption key');
      const done = await moveAll(options, former, signal);
      log.info({ kekId: kek.currentId, done }, 'data keys are wrapped under the current key-encryption key');
    }
    report(await observe());
  }

  async function observe(): Promise<ReadonlyMap<string, number>> {
    const counts = await countByKek(db.read);
    for (const id of new Set([...kek.ids, ...counts.keys()])) gauge.set({ kek_id: id }, counts.get(id) ?? 0);
    problem = problemOf(counts, kek);
    return counts;
  }

  /** Logs what changed since the last report. */
  function report(counts: ReadonlyMap<string, number>): void {
    const unneeded = former.filter((id) => !counts.has(id));
    const text = `${problem ?? ''} ${unneeded.join(' ')}`;
    if (text === reported) return;
    reported = text;
    if (problem !== undefined)
      log.error({ problem }, 'data keys are not under the current key-encryption key');
    for (const kekId of unneeded) {
      log.info({ kekId }, 'no wallet needs this key-encryption key; its file can leave CHANCERY_KEK_FILE');
    }
  }

  return {
    run,
    assertDone: () => {
      if (problem !== undefined) throw new Error(problem);
    },
  };
}

async function moveAll(
  options: RewrapOptions,
  kekIds: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const { db, log, batch = 100 } = options;
  let done = 0;
  let after: string | undefined;
  for (;;) {
    const rows = await listWrapped(db.read, kekIds, { after, limit: batch });
    for (const row of rows) {
      signal.throwIfAborted();
      if (!(await move(options, row))) continue;
      done += 1;
      if (done % logEvery === 0) log.info({ done }, 'wrapping data keys continues');
    }
    after = rows.at(-1)?.walletId;
    if (rows.length < batch) return done;
  }
}

/** False for a damaged row, which keeps its wrapping and does not stop the others. */
async function move({ db, kek, log }: RewrapOptions, row: WrappedKey): Promise<boolean> {
  try {
    const after = await rewrapSecret(kek, row, row);
    await db.transact((tx) => replaceWrapping(tx, row, after));
    return true;
  } catch (error) {
    if (!isAppError(error, 'internal')) throw error;
    log.error({ err: error, walletId: row.walletId }, 'the data key of a wallet cannot be wrapped again');
    return false;
  }
}

function problemOf(counts: ReadonlyMap<string, number>, kek: KekProvider): string | undefined {
  const unknown = [...counts.keys()].filter((id) => !kek.ids.includes(id));
  if (unknown.length > 0) {
    return `${countOf(counts, unknown)} data keys are wrapped under keys that are not listed: ${unknown.join(', ')}`;
  }
  const former = kek.ids.filter((id) => id !== kek.currentId);
  const pending = countOf(counts, former);
  return pending === 0 ? undefined : `${pending} data keys are still wrapped under former keys`;
}

function countOf(counts: ReadonlyMap<string, number>, kekIds: readonly string[]): number {
  return kekIds.reduce((sum, id) => sum + (counts.get(id) ?? 0), 0);
}
