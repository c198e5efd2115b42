import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Docket } from '../building/docket.ts';
import type { Tombstone } from '../pool/tombstones.ts';
import { decodeTransaction, type LogRecord } from '../records/entries.ts';
import { findGap, type LoggedDockets, type RecoveredRegister } from '../records/recovery.ts';
import { replayTombstone } from '../sealing/eviction.ts';
import type { Ledger, SealedDocket } from '../sealing/ports.ts';
import { rebuildDocket } from '../sealing/rebuild.ts';
import type { RegisterChain } from '../sealing/register-chain.ts';
import type { LoggedEntry, PendingEntry } from './lookup.ts';

export interface RestoreOptions {
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly clock: Clock;
  readonly log: Logger;
  append(...records: LogRecord[]): Promise<number>;
  /** The dockets of a register that the log holds, from one number on. Only allowed before anything is appended. */
  readLoggedDockets(registerId: string, from: number): Promise<LoggedDockets>;
}

/**
 * A register service that is behind what it had stored was restored from an older state. Missing dockets that this log
 * still holds become decided and not stored again; the register service verifies them like any other. Returns the reason
 * why the register must halt when the log lacks one of them.
 */
export async function restoreLostDockets(
  { ledger, log, readLoggedDockets }: RestoreOptions,
  registerId: string,
  recovered: RecoveredRegister,
): Promise<string | undefined> {
  const height = (await ledger.findRegister(registerId))?.height;
  const { storedHeight } = recovered;
  if (height !== undefined && height >= storedHeight) return undefined;
  if (storedHeight === 0) return undefined;
  if (height === undefined)
    return `the register service had docket ${storedHeight - 1} of this register and no longer knows the register; restore its database`;
  const loggedDockets = await readLoggedDockets(registerId, height);
  const gap = findGap(loggedDockets, height, storedHeight);
  if (gap !== undefined) {
    return `the register service lost dockets ${height} to ${storedHeight - 1}, and the log of this validator lacks docket ${gap}; restore its database`;
  }
  for (const [number, docket] of loggedDockets.decided) recovered.decided.set(number, docket);
  for (const [txId, placed] of loggedDockets.transactions) recovered.transactions.set(txId, placed);
  log.warn(
    { registerId, height, storedHeight },
    'the register service lost dockets; this validator stores them again from its log',
  );
  return undefined;
}

/**
 * Restores the pool. What repeats a stored Action is dropped: no docket can hold it any more, also no docket in progress. The
 * log of an earlier version may hold other Actions with the same replay key. One of them stays, preferably that of a docket in
 * progress, because the register service would refuse a docket with the second one.
 */
async function restorePool(
  { clock, append }: RestoreOptions,
  register: RegisterChain,
  recovered: RecoveredRegister,
  pending: readonly PendingEntry[],
): Promise<void> {
  const nowMs = clock.nowMs();
  for (const tombstone of recovered.tombstones.values()) register.tombstones.add(tombstone, nowMs);
  const headers = [...recovered.decided.values(), ...recovered.own].flatMap(({ header }) => header ?? []);
  const inFlight = new Set(headers.flatMap((header) => header.transactionIds));
  const isInFlight = ({ transaction }: PendingEntry) => inFlight.has(transaction.txId);
  const ordered = [...pending.filter(isInFlight), ...pending.filter((each) => !isInFlight(each))];
  const replays: Tombstone[] = [];
  for (const each of ordered) {
    const { txId, replayKey } = each.transaction;
    const waiting = replayKey && !isInFlight(each) ? register.pool.findReplay(replayKey) : undefined;
    const holder = waiting ?? each.sealedReplay;
    if (holder) replays.push(replayTombstone(each.transaction, holder, nowMs));
    register.pool.add(each.transaction);
    register.pool.setSegment(txId, each.segment);
  }
  const dropped = replays.flatMap((tombstone) => register.drop(tombstone));
  if (dropped.length > 0) await append(...dropped.map((value) => ({ kind: 'tombstone' as const, value })));
}

async function restoreDockets(
  register: RegisterChain,
  recovered: RecoveredRegister,
  pending: readonly PendingEntry[],
): Promise<void> {
  const others = recovered.others.map(({ transaction }) => decodeTransaction(transaction));
  const logged = new Map(pending.map(({ transaction }) => [transaction.txId, transaction]));
  const find = (txId: string) => {
    const first = register.pool.find(txId)?.transaction ?? logged.get(txId);
    const same = others.filter((each) => each.txId === txId);
    return first === undefined ? same : [first, ...same];
  };
  const decided: SealedDocket[] = [];
  for (let number = register.state.height; ; number += 1) {
    const known = recovered.decided.get(number);
    const docket = known && rebuildDocket(known.header, find);
    if (known === undefined || docket === undefined) break;
    decided.push({ docket, certificate: known.certificate });
  }
  const ownDockets = recovered.own.flatMap((own): Docket[] => {
    const docket = own.header && rebuildDocket(own.header, find);
    return docket === undefined ? [] : [docket];
  });
  if (register.status === 'Halted') return;
  await register.restore({ decided, own: recovered.own, ownDockets, mode: recovered.mode });
}

/** The transactions of a recovered register, decoded. */
export function loggedOf({ transactions }: RecoveredRegister): LoggedEntry[] {
  return [...transactions.values()].map(({ transaction, segment }) => ({
    transaction: decodeTransaction(transaction),
    segment,
  }));
}

/** Restores pool and dockets of a register that has begun. `evict` turns conflicting transactions into tombstones in between. */
export async function restoreContent(
  options: RestoreOptions,
  register: RegisterChain,
  {
    recovered,
    pending,
  }: { readonly recovered: RecoveredRegister; readonly pending: readonly PendingEntry[] },
  evict: () => void,
): Promise<void> {
  const secondSuccessors = findSecondSuccessors(pending);
  await restorePool(
    options,
    register,
    recovered,
    pending.filter(({ transaction }) => !secondSuccessors.has(transaction.txId)),
  );
  evict();
  await restoreDockets(register, recovered, pending);
}

/**
 * The log also holds transactions that a proposal needed and the pool could not take: second successors of one transaction,
 * and their descendants. The first successor waits as before; the others are kept for a docket that is decided or locked.
 */
function findSecondSuccessors(pending: readonly LoggedEntry[]): Set<string> {
  const successors = new Map<string, string>();
  const secondSuccessors = new Set<string>();
  for (const { transaction } of pending) {
    const { txId, previousTransactionId: previous, exclusivePredecessor } = transaction;
    if (previous === undefined) continue;
    const isSecond = exclusivePredecessor && successors.has(previous);
    if (isSecond || secondSuccessors.has(previous)) secondSuccessors.add(txId);
    else successors.set(previous, txId);
  }
  return secondSuccessors;
}
