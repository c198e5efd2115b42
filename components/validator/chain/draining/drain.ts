import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { DrainChange, LogRecord } from '../records/entries.ts';
import type { RegisterChain } from '../sealing/register-chain.ts';

export interface DrainOptions {
  readonly self: string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  registers(): Iterable<RegisterChain>;
  append(record: LogRecord): Promise<number>;
  /** Throws AppError unavailable VALIDATOR_PAUSED while the disk is full. */
  assertDiskSpace(): void;
  /** Tells the peers at once whether this validator proposes. */
  notifyPeers(): void;
  /** Announces the waiting transactions of a register to its other members again. */
  reannounce(register: RegisterChain): void;
}

/** The progress of a drain. */
export interface DrainFacts {
  readonly state: 'None' | 'Draining' | 'Drained';
  readonly sinceMs: number | undefined;
  /** Transactions that were accepted before the drain and are neither sealed nor dropped. */
  readonly waiting: number;
  /** Dockets that this member proposed and that are undecided, or that are decided and not stored. */
  readonly inFlight: number;
  /** Registers with waiting transactions whose only member is this validator. The transactions stay in its log. */
  readonly alone: readonly string[];
}

const reannounceMs = 1_000;
const pollMs = 50;

/**
 * A draining validator accepts nothing from clients and proposes nothing. It still votes, so that the other members seal
 * its pending transactions. Heartbeats announce the drain and peers skip its proposer turns at once; a round that it has
 * begun ends. A requested drain is persisted in the log.
 */
export class Drain {
  readonly #options: DrainOptions;
  #sinceMs: number | undefined;
  #isStopping = false;

  /** @param sinceMs start of a drain that the log recorded and that has not ended */
  constructor(options: DrainOptions, sinceMs: number | undefined) {
    this.#options = options;
    this.#sinceMs = sinceMs;
    if (sinceMs !== undefined) this.#keepReannouncing();
  }

  get isDraining(): boolean {
    return this.#sinceMs !== undefined || this.#isStopping;
  }

  /** Throws AppError unavailable VALIDATOR_DRAINING during a drain. */
  assertAccepting(): void {
    if (!this.isDraining) return;
    const message = 'This validator is drained; submit the transaction to another validator';
    const options = { retryAfterSeconds: 1, elsewhere: true } as const;
    throw new AppError('unavailable', 'VALIDATOR_DRAINING', message, options);
  }

  /** Starts the drain. Idempotent. Throws AppError unavailable VALIDATOR_PAUSED. */
  async begin(): Promise<DrainFacts> {
    if (this.#sinceMs === undefined) {
      this.#options.assertDiskSpace();
      this.#sinceMs = this.#options.clock.nowMs();
      try {
        await this.#persist();
      } catch (error) {
        this.#sinceMs = undefined;
        throw error;
      }
      this.#options.notifyPeers();
      this.#keepReannouncing();
    }
    return this.facts;
  }

  /** Ends the drain. Throws AppError unavailable VALIDATOR_PAUSED. */
  async end(): Promise<DrainFacts> {
    const sinceMs = this.#sinceMs;
    if (sinceMs !== undefined) {
      this.#options.assertDiskSpace();
      this.#sinceMs = undefined;
      try {
        await this.#persist();
      } catch (error) {
        this.#sinceMs = sinceMs;
        throw error;
      }
      this.#options.scheduler.clear('drain');
      this.#options.notifyPeers();
      for (const register of this.#options.registers()) register.wake();
    }
    return this.facts;
  }

  /** For shutdown: resolves when nothing is in flight, or after that time. Nothing is persisted. */
  async stop(withinMs: number): Promise<void> {
    const { clock, scheduler, notifyPeers } = this.#options;
    this.#isStopping = true;
    notifyPeers();
    const untilMs = clock.nowMs() + withinMs;
    while (this.facts.inFlight > 0 && clock.nowMs() < untilMs) {
      await new Promise<void>((resolve) => scheduler.set('stopping', pollMs, resolve));
    }
  }

  get facts(): DrainFacts {
    const active = [...this.#options.registers()].filter(({ status }) => status === 'Running');
    const inFlight = active.reduce((sum, register) => sum + this.#inFlight(register), 0);
    const sinceMs = this.#sinceMs;
    if (sinceMs === undefined) return { state: 'None', sinceMs, waiting: 0, inFlight, alone: [] };
    const held = active.filter((register) => countBefore(register, sinceMs) > 0);
    const alone = held.filter((register) => this.#isAlone(register)).map(({ id }) => id);
    const waiting = held
      .filter(({ id }) => !alone.includes(id))
      .reduce((sum, register) => sum + countBefore(register, sinceMs), 0);
    const state = waiting + inFlight === 0 ? 'Drained' : 'Draining';
    return { state, sinceMs, waiting, inFlight, alone };
  }

  /** The record that a new segment of the log must contain. */
  *carryOver(): Iterable<LogRecord> {
    if (this.#sinceMs !== undefined) yield { kind: 'drain', value: { sinceMs: this.#sinceMs } };
  }

  #persist(): Promise<number> {
    const value: DrainChange = this.#sinceMs === undefined ? {} : { sinceMs: this.#sinceMs };
    return this.#options.append({ kind: 'drain', value });
  }

  #isAlone({ state }: RegisterChain): boolean {
    return state.members.every(({ validatorId }) => validatorId === this.#options.self);
  }

  #inFlight(register: RegisterChain): number {
    const { machine, facts } = register;
    const isOpen = machine.step !== 'idle' && machine.step !== 'decided';
    const proposal = machine.rounds.get(machine.round)?.proposal;
    const isProposing = isOpen && proposal?.validatorId === this.#options.self;
    return facts.unstored + (isProposing ? 1 : 0);
  }

  #keepReannouncing(): void {
    const { registers, scheduler, reannounce } = this.#options;
    scheduler.set('drain', reannounceMs, () => {
      if (this.#sinceMs === undefined) return;
      for (const register of registers()) if (register.pool.size > 0) reannounce(register);
      this.#keepReannouncing();
    });
  }
}

function countBefore({ pool }: RegisterChain, sinceMs: number): number {
  let count = 0;
  for (const { addedAtMs } of pool.waiting()) if (addedAtMs <= sinceMs) count += 1;
  return count;
}
