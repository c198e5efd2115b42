import type { Verifier } from '#core/crypto/verify.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { LoggedEvidence, LogRecord } from '../log/entries.ts';
import type { Register } from '../sealing/register.ts';
import { EvidencePool, type KnownEvidence } from './evidence.ts';
import type { PeerEvidence } from './transport.ts';
import type { VoterHistory } from './voters.ts';

export interface WitnessOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly verifier: Verifier;
  readonly voters: VoterHistory;
  append(...records: LogRecord[]): Promise<number>;
  find(registerId: string): Register | undefined;
  counted(kind: PeerEvidence['kind']): void;
  /** To all other members of a register. */
  tellAll(register: Register, evidence: PeerEvidence): void;
  tell(to: string, registerId: string, evidence: PeerEvidence): void;
  /** There is evidence of a register that was not there before. */
  held(registerId: string): void;
}

/** Evidence of heights that this member has not reached: it cannot be judged yet, and is not given again by itself. */
const mostEarlyOfOne = 4;
const mostEarly = 64;

interface Early {
  readonly from: string;
  readonly evidence: PeerEvidence;
}

/**
 * Keeps what proves a fault: in the log, so that it outlives a restart, and at every other member. A register of which
 * there are two certificates of one height halts.
 */
export class Witness {
  readonly #options: WitnessOptions;
  readonly #pool = new EvidencePool();
  readonly #early = new Map<string, Early[]>();

  constructor(options: WitnessOptions) {
    this.#options = options;
  }

  list(registerId: string): readonly KnownEvidence[] {
    return this.#pool.list(registerId);
  }

  /** Pieces that are held, of all registers. */
  get size(): number {
    return this.#pool.size;
  }

  /**
   * False when it proves nothing. What is known already, or cannot be judged any more, is not looked at again.
   * @param from who gave it; this validator itself when it saw both messages
   */
  take(from: string, registerId: string, evidence: PeerEvidence): boolean {
    const { clock, verifier, voters, find } = this.#options;
    const register = find(registerId);
    if (register === undefined) return true;
    voters.note(register);
    const { height } = evidence.first;
    if (height > register.state.height) {
      this.#keepEarly(registerId, { from, evidence });
      return true;
    }
    const judge = { voters: voters.find(registerId, height), verifier, nowMs: clock.nowMs() };
    const taken = this.#pool.take(registerId, evidence, judge);
    if (taken === 'new') this.#onNew(register, evidence);
    return taken !== 'false';
  }

  /** The register goes on with another height. */
  decided(registerId: string): void {
    const early = this.#early.get(registerId);
    this.#early.delete(registerId);
    for (const { from, evidence } of early ?? []) this.take(from, registerId, evidence);
    if (this.#pool.list(registerId).length > 0) this.#options.held(registerId);
  }

  /** What was proven before a restart. A register that halted for it stays halted. */
  recall(registerId: string, logged: readonly LoggedEvidence[]): void {
    for (const { evidence, proof } of logged) {
      if (proof !== undefined) this.#pool.recall(registerId, evidence, proof);
      this.#haltFor(registerId, evidence);
    }
    if (this.#pool.list(registerId).length > 0) this.#options.held(registerId);
  }

  /** Another member may have been away when it was told to all. */
  share(to: string, { id }: Register): void {
    for (const { evidence } of this.#pool.list(id)) this.#options.tell(to, id, evidence);
  }

  #keepEarly(registerId: string, given: Early): void {
    const early = this.#early.get(registerId) ?? [];
    const own = early.filter(({ from }) => from === given.from);
    if (own.length >= mostEarlyOfOne || early.length >= mostEarly) return;
    this.#early.set(registerId, [...early, given]);
  }

  #onNew(register: Register, evidence: PeerEvidence): void {
    const { log, append, counted, tellAll, held } = this.#options;
    const known = this.#pool.find(register.id, evidence);
    if (known === undefined) return;
    const { height, validatorIds } = known;
    const { kind } = evidence;
    const registerId = register.id;
    counted(kind);
    log.error({ registerId, height, kind, validatorIds, evidence }, 'equivocation');
    // The log reports its own failure.
    append(logged(registerId, known)).catch(() => {});
    tellAll(register, evidence);
    this.#haltFor(registerId, evidence);
    held(registerId);
  }

  /** Two certificates of one height: more members failed than the set tolerates, and nothing decides which one counts. */
  #haltFor(registerId: string, evidence: PeerEvidence): void {
    if (evidence.kind !== 'conflicting-certificate') return;
    const reason = `two certificates were made for docket ${evidence.first.height}`;
    this.#options.find(registerId)?.halt(reason);
  }
}

/** Evidence as it stands in the log. */
export function logged(registerId: string, known: KnownEvidence): LogRecord {
  const { evidence, networkId, validatorSetHash, signers, seenAtMs } = known;
  const proof = { networkId, validatorSetHash, signers, seenAtMs };
  return { kind: 'evidence', value: { registerId, evidence, proof } };
}
