import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { DrainChange, LogRecord } from '../records/entries.ts';
import type { RegisterChain } from '../sealing/register-chain.ts';

import type { DrainState } from './drain-state.ts';

interface DrainOptions {
  readonly self: string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  registers(): Iterable<RegisterChain>;
  append(record: LogRecord): Promise<number>;
  /** Throws AppError unavailable VALIDATOR_PAUSED while the disk is full. */
  assertDiskSpace(): void;
  /** Sends the peers at once whether this validator proposes. */
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
  readonly #state: DrainState;

  constructor(options: DrainOptions, state: DrainState) {
    this.#options = options;
    this.#state = state;
    if (state.sinceMs !== undefined) this.#keepReannouncing();
  }

  get isDraining(): boolean {
    return this.#state.isDraining;
  }

  /** Starts the drain. Idempotent. Throws AppError unavailable VALIDATOR_PAUSED. */
  async begin(): Promise<DrainFacts> {
    if (this.#state.sinceMs === undefined) {
      this.#options.assertDiskSpace();
      this.#state.sinceMs = this.#options.clock.nowMs();
      try {
        await this.#persist();
      } catch (error) {
        this.#state.sinceMs = undefined;
        throw error;
      }
      this.#options.notifyPeers();
      this.#keepReannouncing();
    }
    return this.facts;
  }

  /** Ends the drain. Throws AppError unavailable VALIDATOR_PAUSED. */
  async end(): Promise<DrainFacts> {
    const sinceMs = this.#state.sinceMs;
    if (sinceMs !== undefined) {
      this.#options.assertDiskSpace();
      this.#state.sinceMs = undefined;
      try {
        await this.#persist();
      } catch (error) {
        this.#state.sinceMs = sinceMs;
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
    this.#state.isStopping = true;
    notifyPeers();
    const untilMs = clock.nowMs() + withinMs;
    while (this.facts.inFlight > 0 && clock.nowMs() < untilMs) {
      await new Promise<void>((resolve) => scheduler.set('stopping', pollMs, resolve));
    }
  }

  get facts(): DrainFacts {
    const active = [...this.#options.registers()].filter(({ status }) => status === 'Running');
    const inFlight = active.reduce((sum, register) => sum + this.#inFlight(register), 0);
    const sinceMs = this.#state.sinceMs;
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
    if (this.#state.sinceMs !== undefined) yield { kind: 'drain', value: { sinceMs: this.#state.sinceMs } };
  }

  #persist(): Promise<number> {
    const value: DrainChange = this.#state.sinceMs === undefined ? {} : { sinceMs: this.#state.sinceMs };
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
      if (this.#state.sinceMs === undefined) return;
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
