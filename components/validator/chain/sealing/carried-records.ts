import type { Tombstone } from '../pool/tombstones.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { LogRecord, Mode, OwnMessage } from '../records/entries.ts';
import type { RegisterState } from '../state/state.ts';
import type { SealedDocket } from './ports.ts';

/** The state of a register that a new segment of the log must contain. */
interface CarriedState {
  readonly state: Pick<RegisterState, 'registerId' | 'height' | 'headHash'>;
  readonly storedHeight: number;
  readonly mode: Mode;
  readonly tombstones: Iterable<Tombstone>;
  /** The waiting transactions of the deleted segment. */
  readonly transactions: Iterable<PooledTransaction>;
  /** Decided dockets that are not known to be stored. */
  readonly unstored: readonly SealedDocket[];
  readonly own: readonly OwnMessage[];
}

/** Log records that keep the state of a register when a segment of the log is deleted. */
export function* carriedRecords({
  state,
  storedHeight,
  mode,
  ...carried
}: CarriedState): Iterable<LogRecord> {
  const { registerId } = state;
  const headHash = state.height === storedHeight ? state.headHash : '';
  yield { kind: 'snapshot', value: { registerId, height: storedHeight, headHash } };
  if (mode !== 'Running') yield { kind: 'mode', value: { registerId, mode } };
  for (const value of carried.tombstones) yield { kind: 'tombstone', value };
  for (const value of carried.transactions) yield { kind: 'transaction', value };
  for (const { docket, certificate } of carried.unstored) {
    yield { kind: 'decided', value: { header: docket.header, certificate } };
  }
  for (const value of carried.own) yield { kind: 'own', value };
}
