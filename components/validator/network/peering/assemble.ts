import { encodeHex } from '#core/encoding/hex.ts';
import { findTimestamp, TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Docket } from '../../chain/building/docket.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { LogRecord } from '../../chain/records/entries.ts';
import type { AdmissionEpochs } from '../../chain/sealing/admission-epochs.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { Admission } from '../../intake/admission/admission.ts';
import {
  type PeerVerificationOptions,
  verifyPeerTransactions,
} from '../../intake/verification/verify-peer-transactions.ts';
import type { CommitBundle, SealedTransaction } from '../transport/transport.ts';
import type { Fetcher } from './fetch.ts';

export interface AssembleOptions extends PeerVerificationOptions {
  readonly fetcher: Fetcher;
  readonly epochs: AdmissionEpochs;
  readonly log: Logger;
  /** Resolves when the admissions in flight of these transactions have ended. */
  readonly settled: Admission['settled'];
  append(...records: LogRecord[]): Promise<number>;
}

/** The docket to assemble and the validators that may have its missing records. */
interface Assembly {
  readonly content: Pick<CommitBundle, 'header' | 'recordHashes'>;
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
  register: RegisterChain,
  assembly: Assembly,
): Promise<Docket | 'invalid' | undefined> {
  const { content, certified } = assembly;
  const here = await awaitPooled(options, register, assembly);
  if (here === 'invalid') return 'invalid';
  if (here.missing.size === 0) return complete(register, content, here.found, certified);
  // Only the register service provides the genesis transaction.
  if (content.header.docketNumber === 0 && !certified) return undefined;
  const epoch = options.epochs.begin();
  try {
    const request = { registerId: register.id, hashes: here.missing };
    const records = await options.fetcher.records(request, assembly.sources);
    if (records.size < here.missing.size) return undefined;
    const fetched = await judge(options, register, assembly, { here, records });
    if (fetched === 'invalid') return 'invalid';
    if (!certified) await keep(options, register, inOrder(content, fetched));
    for (const transaction of fetched) here.found.set(transaction.txId, transaction);
    return complete(register, content, here.found, certified);
  } catch (error) {
    if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) throw error;
    options.log.debug(
      { err: error, registerId: register.id },
      'a docket cannot be judged now; it is retried',
    );
    return undefined;
  } finally {
    options.epochs.end(epoch);
    register.pool.forgetStored(options.epochs.oldestActive);
  }
}

interface PooledParts {
  readonly found: Map<string, PooledTransaction>;
  /** Leaf hash by transaction id. */
  readonly missing: ReadonlyMap<string, string>;
}

/** Assembles the docket synchronously when all of its transactions are pooled. */
export function assembleFromPool(
  register: RegisterChain,
  content: Assembly['content'],
): Docket | 'invalid' | undefined {
  const here = splitPooled(register, content, false);
  if (here === 'invalid') return 'invalid';
  return here.missing.size === 0 ? complete(register, content, here.found, false) : undefined;
}

/** Transactions in flight are awaited rather than fetched and verified again. */
async function awaitPooled(
  { settled }: AssembleOptions,
  register: RegisterChain,
  { content, certified }: Assembly,
): Promise<PooledParts | 'invalid'> {
  const here = splitPooled(register, content, certified);
  if (here === 'invalid' || here.missing.size === 0) return here;
  await settled(register.id, here.missing.keys());
  return splitPooled(register, content, certified);
}

/** Splits a docket into pooled and missing transactions. A proposal that repeats a sealed transaction is invalid. */
function splitPooled(
  register: RegisterChain,
  content: Assembly['content'],
  certified: boolean,
): PooledParts | 'invalid' {
  const found = new Map<string, PooledTransaction>();
  const missing = new Map<string, string>();
  for (const [index, txId] of content.header.transactionIds.entries()) {
    const hash = content.recordHashes[index] ?? '';
    const known = register.pool.find(txId);
    if (known !== undefined && known.stage !== 'waiting' && !certified) return 'invalid';
    if (known !== undefined && encodeHex(known.transaction.leaf) === hash) found.set(txId, known.transaction);
    else missing.set(txId, hash);
  }
  return { found, missing };
}

async function judge(
  options: AssembleOptions,
  register: RegisterChain,
  { content, certified }: Assembly,
  { here, records }: { here: PooledParts; records: ReadonlyMap<string, SealedTransaction> },
): Promise<readonly PooledTransaction[] | 'invalid'> {
  const known = new Map<string, Pick<PooledTransaction, 'type' | 'step'>>(here.found);
  const ticks = findTimestamp(content.header.timestamp);
  if (ticks === undefined) return 'invalid';
  const atMs = Number(ticks / TICKS_PER_MILLISECOND);
  const context = { atMs, nowTicks: ticks, known, certified };
  return await verifyPeerTransactions(options, register, [...records.values()], context);
}

/** Logs fetched transactions before any vote refers to them, and pools those that fit, since the docket may not be decided. */
async function keep(
  options: AssembleOptions,
  register: RegisterChain,
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
  for (const { txId } of fitting) register.pool.setSegment(txId, segment);
}

/** In docket order: parents before children. */
function inOrder(
  { header }: Assembly['content'],
  fetched: readonly PooledTransaction[],
): PooledTransaction[] {
  const places = new Map(header.transactionIds.map((txId, index) => [txId, index]));
  return fetched.toSorted((a, b) => (places.get(a.txId) ?? 0) - (places.get(b.txId) ?? 0));
}

function fits({ pool }: RegisterChain, transaction: PooledTransaction): boolean {
  const { txId, lane, senderAddress, sizeBytes, previousTransactionId: previous } = transaction;
  if (pool.find(txId) !== undefined || pool.exceededLimit(lane, senderAddress, sizeBytes) !== undefined)
    return false;
  if (transaction.replayKey !== undefined && pool.findReplay(transaction.replayKey) !== undefined)
    return false;
  const conflicting = previous === undefined ? undefined : pool.findSuccessor(previous);
  return !transaction.exclusivePredecessor || conflicting === undefined;
}

/** Orders the transactions as in the docket. Each predecessor must be sealed or be in the docket; a merely waiting one makes it invalid. */
function complete(
  { pool }: RegisterChain,
  { header }: Assembly['content'],
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
