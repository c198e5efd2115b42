import { encodeHex } from '#core/encoding/hex.ts';
import { findTimestamp, TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Admission } from '../admission/admission.ts';
import { type ExamineOptions, examine } from '../admission/verify-peer-transactions.ts';
import type { Docket } from '../building/docket.ts';
import type { LogRecord } from '../log/entries.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { Serials } from '../sealing/admission-epochs.ts';
import type { Register } from '../sealing/register-chain.ts';
import type { Fetcher } from './fetch.ts';
import type { CommitBundle, SealedTransaction } from './transport.ts';

export interface AssembleOptions extends ExamineOptions {
  readonly fetcher: Fetcher;
  readonly serials: Serials;
  readonly log: Logger;
  admission(): Pick<Admission, 'settled'>;
  append(...records: LogRecord[]): Promise<number>;
}

/** The docket to assemble and the validators that may have its missing records. */
export interface Assembly {
  readonly offer: Pick<CommitBundle, 'header' | 'recordHashes'>;
  readonly sources: readonly string[];
  /** A quorum has sealed the docket. */
  readonly certified: boolean;
}

/**
 * Assembles a docket from pooled transactions and from records fetched from peers, which pass the admission checks. 'invalid'
 * when one of its transactions may not be in it; undefined when a record is unavailable or cannot be judged now. Records
 * fetched for a proposal are on disk when this resolves.
 */
export async function assemble(
  options: AssembleOptions,
  register: Register,
  assembly: Assembly,
): Promise<Docket | 'invalid' | undefined> {
  const { offer, certified } = assembly;
  const here = await atHandSoon(options, register, assembly);
  if (here === 'invalid') return 'invalid';
  if (here.missing.size === 0) return whole(register, offer, here.found, certified);
  // Only the register service provides the genesis transaction.
  if (offer.header.docketNumber === 0 && !certified) return undefined;
  const serial = options.serials.begin();
  try {
    const wanted = { registerId: register.id, hashes: here.missing };
    const given = await options.fetcher.records(wanted, assembly.sources);
    if (given.size < here.missing.size) return undefined;
    const fetched = await judge(options, register, assembly, { here, given });
    if (fetched === 'invalid') return 'invalid';
    if (!certified) await keep(options, register, inOrder(offer, fetched));
    for (const transaction of fetched) here.found.set(transaction.txId, transaction);
    return whole(register, offer, here.found, certified);
  } catch (error) {
    if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) throw error;
    options.log.debug(
      { err: error, registerId: register.id },
      'a docket cannot be judged now; it is retried',
    );
    return undefined;
  } finally {
    options.serials.end(serial);
    register.pool.forgetStored(options.serials.oldestActive);
  }
}

interface AtHand {
  readonly found: Map<string, PooledTransaction>;
  /** Leaf hash by transaction id. */
  readonly missing: ReadonlyMap<string, string>;
}

/** Assembles the docket synchronously when all of its transactions are pooled. */
export function assembleAtHand(register: Register, offer: Assembly['offer']): Docket | 'invalid' | undefined {
  const here = atHand(register, offer, false);
  if (here === 'invalid') return 'invalid';
  return here.missing.size === 0 ? whole(register, offer, here.found, false) : undefined;
}

/** Transactions in flight are awaited rather than fetched and verified again. */
async function atHandSoon(
  { admission }: AssembleOptions,
  register: Register,
  { offer, certified }: Assembly,
): Promise<AtHand | 'invalid'> {
  const here = atHand(register, offer, certified);
  if (here === 'invalid' || here.missing.size === 0) return here;
  await admission().settled(register.id, here.missing.keys());
  return atHand(register, offer, certified);
}

/** Splits a docket into pooled and missing transactions. A proposal that repeats a sealed transaction is invalid. */
function atHand(register: Register, offer: Assembly['offer'], certified: boolean): AtHand | 'invalid' {
  const found = new Map<string, PooledTransaction>();
  const missing = new Map<string, string>();
  for (const [index, txId] of offer.header.transactionIds.entries()) {
    const hash = offer.recordHashes[index] ?? '';
    const known = register.pool.find(txId);
    if (known !== undefined && known.stage !== 'waiting' && !certified) return 'invalid';
    if (known !== undefined && encodeHex(known.transaction.leaf) === hash) found.set(txId, known.transaction);
    else missing.set(txId, hash);
  }
  return { found, missing };
}

async function judge(
  options: AssembleOptions,
  register: Register,
  { offer, certified }: Assembly,
  { here, given }: { here: AtHand; given: ReadonlyMap<string, SealedTransaction> },
): Promise<readonly PooledTransaction[] | 'invalid'> {
  const types = new Map([...here.found.values()].map(({ txId, type }) => [txId, type as string]));
  const ticks = findTimestamp(offer.header.timestamp);
  if (ticks === undefined) return 'invalid';
  const atMs = Number(ticks / TICKS_PER_MILLISECOND);
  return await examine(options, register, [...given.values()], { atMs, types, certified });
}

/** Logs fetched transactions before any vote refers to them, and pools those that fit, since the docket may not be decided. */
async function keep(
  options: AssembleOptions,
  register: Register,
  fetched: readonly PooledTransaction[],
): Promise<void> {
  const left = new Set<string>();
  const fitting = fetched.filter((each) => {
    // A descendant of a transaction that does not fit would wait without its predecessor.
    const isOrphan = left.has(each.previousTransactionId ?? '');
    if (isOrphan || !fits(register, each)) left.add(each.txId);
    else register.pool.add(each);
    return !left.has(each.txId);
  });
  const segment = await options.append(...fetched.map((value) => ({ kind: 'transaction' as const, value })));
  for (const { txId } of fitting) register.pool.place(txId, segment);
}

/** In docket order: parents before children. */
function inOrder({ header }: Assembly['offer'], fetched: readonly PooledTransaction[]): PooledTransaction[] {
  const places = new Map(header.transactionIds.map((txId, place) => [txId, place]));
  return fetched.toSorted((a, b) => (places.get(a.txId) ?? 0) - (places.get(b.txId) ?? 0));
}

function fits({ pool }: Register, transaction: PooledTransaction): boolean {
  const { txId, lane, senderAddress, sizeBytes, previousTransactionId: previous } = transaction;
  if (pool.find(txId) !== undefined || pool.isFullFor(lane, senderAddress, sizeBytes) !== undefined)
    return false;
  if (transaction.replayKey !== undefined && pool.findReplay(transaction.replayKey) !== undefined)
    return false;
  const rival = previous === undefined ? undefined : pool.findSuccessor(previous);
  return !transaction.exclusivePredecessor || rival === undefined;
}

/** Orders the transactions as in the docket. Each predecessor must be sealed or be in the docket; a merely waiting one makes it invalid. */
function whole(
  { pool }: Register,
  { header }: Assembly['offer'],
  found: ReadonlyMap<string, PooledTransaction>,
  certified: boolean,
): Docket | 'invalid' | undefined {
  const transactions = header.transactionIds.flatMap((txId) => found.get(txId) ?? []);
  if (transactions.length !== header.transactionIds.length) return undefined;
  const isLoose = transactions.some(({ previousTransactionId: previous }) => {
    if (previous === undefined || found.has(previous)) return false;
    return pool.find(previous)?.stage === 'waiting';
  });
  return isLoose && !certified ? 'invalid' : { header, transactions };
}
