import type { Clock } from '#kit/clock/clock.ts';
import type { Message } from '../consensus/messages.ts';
import { type Heard, heardBy, missingAt } from '../consensus/peer-round-state.ts';
import type { Register } from '../sealing/register-chain.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import type { RoundState } from './transport.ts';

export interface GossipOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  tell(register: Register, to: string, state: RoundState): void;
  tellAll(register: Register, state: RoundState): void;
  pass(register: Register, to: string, message: Message): void;
  find(registerId: string): Register | undefined;
  /** The height does not advance: peers may lack the transactions that wait here. */
  onStalled(register: Register): void;
}

const tickMs = { first: 1_000, last: 4_000 } as const;
/** Minimum interval between two answers to the same validator about the same register. */
const answerMs = 100;
const mostAnswers = 10_000;

interface Watched {
  readonly height: number;
  delayMs: number;
}

/**
 * Repeats consensus messages that may have been lost. A register whose height does not advance broadcasts its round state
 * periodically; a peer that has more sends it, and a peer that lacks messages asks in turn. Every message of one correct
 * member thus reaches all of them, which Tendermint's liveness requires. Idle and advancing registers send nothing.
 */
export class Gossip {
  readonly #options: GossipOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #answered = new Map<string, number>();

  constructor(options: GossipOptions) {
    this.#options = options;
  }

  /** A message of the register was sent or received: its round state is broadcast unless the height advances. */
  watch(register: Register): void {
    const { height } = register.state;
    if (this.#watched.get(register.id)?.height === height) return;
    this.#watched.set(register.id, { height, delayMs: tickMs.first });
    this.#schedule(register.id, tickMs.first);
  }

  /** Sends the round state of a register to one validator at once. */
  tell(register: Register, to: string): void {
    const nowMs = this.#options.clock.nowMs();
    const name = `${to}/${register.id}`;
    if (nowMs - (this.#answered.get(name) ?? Number.NEGATIVE_INFINITY) < answerMs) return;
    this.#answered.delete(name);
    this.#answered.set(name, nowMs);
    const [oldest] = this.#answered.keys();
    if (this.#answered.size > mostAnswers && oldest !== undefined) this.#answered.delete(oldest);
    this.#options.tell(register, to, stateOf(register));
  }

  /** Handles another validator's round state of the same height. */
  take(register: Register, from: string, theirs: Heard): void {
    for (const message of missingAt(register.machine, theirs)) this.#options.pass(register, from, message);
    if (hasMore(theirs, heardBy(register.machine))) this.tell(register, from);
  }

  #schedule(registerId: string, afterMs: number): void {
    this.#options.scheduler.set(`gossip/${registerId}`, afterMs, () => this.#tick(registerId));
  }

  #tick(registerId: string): void {
    const watched = this.#watched.get(registerId);
    const register = this.#options.find(registerId);
    this.#watched.delete(registerId);
    if (watched === undefined || register === undefined || !isStuck(register)) return;
    if (register.state.height !== watched.height) {
      this.watch(register);
      return;
    }
    this.#options.tellAll(register, stateOf(register));
    this.#options.onStalled(register);
    const delayMs = Math.min(watched.delayMs * 2, tickMs.last);
    this.#watched.set(registerId, { height: watched.height, delayMs });
    this.#schedule(registerId, delayMs);
  }
}

function isStuck(register: Register): boolean {
  return register.isOpen && register.machine.step !== 'idle';
}

function stateOf(register: Register): RoundState {
  const { headHash } = register.state;
  return { kind: 'round-state', registerId: register.id, headHash, ...heardBy(register.machine) };
}

/** Whether the other member has received messages that this one has not. */
function hasMore(theirs: Heard, ours: Heard): boolean {
  if (theirs.height !== ours.height) return theirs.height > ours.height;
  if (theirs.round !== ours.round) return theirs.round > ours.round;
  const beyond = (a: readonly number[], b: readonly number[]) => a.some((place) => !b.includes(place));
  return (
    theirs.validRound > ours.validRound ||
    (theirs.hasProposal && !ours.hasProposal) ||
    beyond(theirs.prevotes, ours.prevotes) ||
    beyond(theirs.precommits, ours.precommits)
  );
}
