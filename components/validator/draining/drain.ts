import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { DrainChange, LogRecord } from '../log/entries.ts';
import type { Register } from '../sealing/register.ts';
import type { Scheduler } from '../sealing/scheduler.ts';

export interface DrainOptions {
  readonly self: string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  registers(): Iterable<Register>;
  append(record: LogRecord): Promise<number>;
  /** Throws AppError unavailable VALIDATOR_PAUSED while the log has no room. */
  assertRoom(): void;
  /** Others learn at once whether this validator takes its turns. */
  tell(): void;
  /** Names what waits in a register to its other members. */
  remind(register: Register): void;
}

/** How far a validator is on its way out. */
export interface DrainFacts {
  readonly state: 'None' | 'Draining' | 'Drained';
  readonly sinceMs: number | undefined;
  /** Transactions that were here before the drain and are neither sealed nor dropped. */
  readonly waiting: number;
  /** Dockets that are proposed here and undecided, or decided and not stored. */
  readonly inFlight: number;
  /** Registers with something that nobody else can take: this validator is their only member. It stays in the log. */
  readonly alone: readonly string[];
}

const remindMs = 1_000;
const lookMs = 50;

/**
 * A validator that drains takes in nothing from clients and proposes nothing. It goes on voting, so that what it holds is
 * sealed by the others. Proposers rotate, so there is no office to hand over: its turns are skipped, which the others
 * know from its heartbeats, and a round that it has begun ends. A drain that was asked for is remembered in the log.
 */
export class Drain {
  readonly #options: DrainOptions;
  #sinceMs: number | undefined;
  #isStopping = false;

  /** @param sinceMs what the log says of a drain that has not ended */
  constructor(options: DrainOptions, sinceMs: number | undefined) {
    this.#options = options;
    this.#sinceMs = sinceMs;
    if (sinceMs !== undefined) this.#keepReminding();
  }

  get isDraining(): boolean {
    return this.#sinceMs !== undefined || this.#isStopping;
  }

  /** Throws AppError unavailable VALIDATOR_DRAINING while nothing is taken in. */
  assertTaking(): void {
    if (!this.isDraining) return;
    const message = 'This validator is drained: another one takes transactions in';
    const options = { retryAfterSeconds: 1, elsewhere: true } as const;
    throw new AppError('unavailable', 'VALIDATOR_DRAINING', message, options);
  }

  /** Begins to drain; a second time changes nothing. Throws AppError unavailable VALIDATOR_PAUSED. */
  async begin(): Promise<DrainFacts> {
    if (this.#sinceMs === undefined) {
      this.#options.assertRoom();
      this.#sinceMs = this.#options.clock.nowMs();
      try {
        await this.#remember();
      } catch (error) {
        this.#sinceMs = undefined;
        throw error;
      }
      this.#options.tell();
      this.#keepReminding();
    }
    return this.facts;
  }

  /** Works as before. Throws AppError unavailable VALIDATOR_PAUSED. */
  async end(): Promise<DrainFacts> {
    const sinceMs = this.#sinceMs;
    if (sinceMs !== undefined) {
      this.#options.assertRoom();
      this.#sinceMs = undefined;
      try {
        await this.#remember();
      } catch (error) {
        this.#sinceMs = sinceMs;
        throw error;
      }
      this.#options.scheduler.clear('drain');
      this.#options.tell();
      for (const register of this.#options.registers()) register.wake();
    }
    return this.facts;
  }

  /** The process is about to end: resolves when nothing is in flight, or after that time. Nothing is remembered. */
  async stop(withinMs: number): Promise<void> {
    const { clock, scheduler, tell } = this.#options;
    this.#isStopping = true;
    tell();
    const untilMs = clock.nowMs() + withinMs;
    while (this.facts.inFlight > 0 && clock.nowMs() < untilMs) {
      await new Promise<void>((resolve) => scheduler.set('stopping', lookMs, resolve));
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

  /** What a new segment of the log must say. */
  *carry(): Iterable<LogRecord> {
    if (this.#sinceMs !== undefined) yield { kind: 'drain', value: { sinceMs: this.#sinceMs } };
  }

  #remember(): Promise<number> {
    const value: DrainChange = this.#sinceMs === undefined ? {} : { sinceMs: this.#sinceMs };
    return this.#options.append({ kind: 'drain', value });
  }

  #isAlone({ state }: Register): boolean {
    return state.members.every(({ validatorId }) => validatorId === this.#options.self);
  }

  #inFlight(register: Register): number {
    const { machine, facts } = register;
    const isOpen = machine.step !== 'idle' && machine.step !== 'decided';
    const proposal = machine.rounds.get(machine.round)?.proposal;
    const isProposing = isOpen && proposal?.validatorId === this.#options.self;
    return facts.unstored + (isProposing ? 1 : 0);
  }

  #keepReminding(): void {
    const { registers, scheduler, remind } = this.#options;
    scheduler.set('drain', remindMs, () => {
      if (this.#sinceMs === undefined) return;
      for (const register of registers()) if (register.pool.size > 0) remind(register);
      this.#keepReminding();
    });
  }
}

function countBefore({ pool }: Register, sinceMs: number): number {
  let count = 0;
  for (const { addedAtMs } of pool.waiting()) if (addedAtMs <= sinceMs) count += 1;
  return count;
}
