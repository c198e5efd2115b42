import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Message } from '../../chain/consensus/messages.ts';
import {
  missingMessages,
  type PeerRoundState,
  roundStateOf,
} from '../../chain/consensus/peer-round-state.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { RoundState } from '../transport/transport.ts';

interface RoundGossipOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  sendState(register: RegisterChain, to: string, state: RoundState): void;
  broadcast(register: RegisterChain, state: RoundState): void;
  forward(register: RegisterChain, to: string, message: Message): void;
  find(registerId: string): RegisterChain | undefined;
  /** The height does not advance: peers may lack the transactions that wait here. */
  onStalled(register: RegisterChain): void;
}

const tickMs = { first: 1_000, last: 4_000 } as const;
/** Minimum interval between two answers to the same validator about the same register. */
const answerMs = 100;
const maxAnswers = 10_000;

interface WatchedRegister {
  readonly height: number;
  delayMs: number;
}

/**
 * Repeats consensus messages that may have been lost. A register whose height does not advance broadcasts its round state
 * periodically; a peer that has more sends it, and a peer that lacks messages asks in turn. Every message of one correct
 * member thus reaches all of them, which Tendermint's liveness requires. Idle and advancing registers send nothing.
 */
export class RoundGossip {
  readonly #options: RoundGossipOptions;
  readonly #watched = new Map<string, WatchedRegister>();
  readonly #answered = new Map<string, number>();

  constructor(options: RoundGossipOptions) {
    this.#options = options;
  }

  /** A message of the register was sent or received: its round state is broadcast unless the height advances. */
  watch(register: RegisterChain): void {
    const { height } = register.state;
    if (this.#watched.get(register.id)?.height === height) return;
    this.#watched.set(register.id, { height, delayMs: tickMs.first });
    this.#schedule(register.id, tickMs.first);
  }

  /** Sends the round state of a register to one validator at once. */
  sendState(register: RegisterChain, to: string): void {
    const nowMs = this.#options.clock.nowMs();
    const name = `${to}/${register.id}`;
    if (nowMs - (this.#answered.get(name) ?? Number.NEGATIVE_INFINITY) < answerMs) return;
    this.#answered.delete(name);
    this.#answered.set(name, nowMs);
    const [oldest] = this.#answered.keys();
    if (this.#answered.size > maxAnswers && oldest !== undefined) this.#answered.delete(oldest);
    this.#options.sendState(register, to, stateOf(register));
  }

  /** Handles another validator's round state of the same height. */
  take(register: RegisterChain, from: string, theirs: PeerRoundState): void {
    for (const message of missingMessages(register.machine, theirs))
      this.#options.forward(register, from, message);
    if (hasMore(theirs, roundStateOf(register.machine))) this.sendState(register, from);
  }

  #schedule(registerId: string, afterMs: number): void {
    this.#options.scheduler.set(`gossip/${registerId}`, afterMs, () => this.#tick(registerId));
  }

  #tick(registerId: string): void {
    const observed = this.#watched.get(registerId);
    const register = this.#options.find(registerId);
    this.#watched.delete(registerId);
    if (observed === undefined || register === undefined || !isStuck(register)) return;
    if (register.state.height !== observed.height) {
      this.watch(register);
      return;
    }
    this.#options.broadcast(register, stateOf(register));
    this.#options.onStalled(register);
    const delayMs = Math.min(observed.delayMs * 2, tickMs.last);
    this.#watched.set(registerId, { height: observed.height, delayMs });
    this.#schedule(registerId, delayMs);
  }
}

function isStuck(register: RegisterChain): boolean {
  return register.isOpen && register.machine.step !== 'idle';
}

function stateOf(register: RegisterChain): RoundState {
  const { headHash } = register.state;
  return { kind: 'round-state', registerId: register.id, headHash, ...roundStateOf(register.machine) };
}

/** Whether the other member has received messages that this one has not. */
function hasMore(theirs: PeerRoundState, ours: PeerRoundState): boolean {
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
