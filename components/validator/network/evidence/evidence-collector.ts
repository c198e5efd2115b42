import type { Verifier } from '#core/crypto/verify.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import type { LoggedEvidence, LogRecord } from '../../chain/records/entries.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { EvidencePool, type ProvenEvidence } from './evidence.ts';
import type { VoterHistory } from './voter-history.ts';

interface EvidenceCollectorOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly verifier: Verifier;
  readonly voters: VoterHistory;
  append(...records: LogRecord[]): Promise<number>;
  find(registerId: string): RegisterChain | undefined;
  onProven(kind: PeerEvidence['kind']): void;
  /** Sends to all other members of a register. */
  broadcast(register: RegisterChain, evidence: PeerEvidence): void;
  send(to: string, registerId: string, evidence: PeerEvidence): void;
  /** The register has new evidence. */
  onEvidence(registerId: string): void;
}

/** Bounds of evidence of heights that this member has not reached. It cannot be verified yet, and peers do not resend it. */
const maxEarlyPerSender = 4;
const maxEarly = 64;

interface EarlyEvidence {
  readonly from: string;
  readonly evidence: PeerEvidence;
}

/**
 * Stores proven faults in the log, so that they survive a restart, and sends them to every other member. Two certificates of
 * one height halt the register.
 */
export class EvidenceCollector {
  readonly #options: EvidenceCollectorOptions;
  readonly #pool = new EvidencePool();
  readonly #early = new Map<string, EarlyEvidence[]>();

  constructor(options: EvidenceCollectorOptions) {
    this.#options = options;
  }

  list(registerId: string): readonly ProvenEvidence[] {
    return this.#pool.list(registerId);
  }

  /** Number of pieces of evidence held, over all registers. */
  get size(): number {
    return this.#pool.size;
  }

  /**
   * False when the evidence proves nothing. Evidence that is already held, and evidence of heights whose set is forgotten, is not verified.
   * @param from the sender; this validator's id when it received both messages itself
   */
  take(from: string, registerId: string, evidence: PeerEvidence): boolean {
    const { clock, verifier, voters, find } = this.#options;
    const register = find(registerId);
    if (register === undefined) return true;
    voters.record(register);
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

  /** The register has moved to another height. */
  decided(registerId: string): void {
    const early = this.#early.get(registerId);
    this.#early.delete(registerId);
    for (const { from, evidence } of early ?? []) this.take(from, registerId, evidence);
    if (this.#pool.list(registerId).length > 0) this.#options.onEvidence(registerId);
  }

  /** Restores evidence from the log. A register that halted for it stays halted. */
  restoreEvidence(registerId: string, evidenceRecord: readonly LoggedEvidence[]): void {
    for (const { evidence, proof } of evidenceRecord) {
      if (proof !== undefined) this.#pool.restoreEvidence(registerId, evidence, proof);
      this.#haltFor(registerId, evidence);
    }
    if (this.#pool.list(registerId).length > 0) this.#options.onEvidence(registerId);
  }

  /** Sends all evidence to a member that may have missed the broadcast. */
  share(to: string, { id }: RegisterChain): void {
    for (const { evidence } of this.#pool.list(id)) this.#options.send(to, id, evidence);
  }

  #keepEarly(registerId: string, added: EarlyEvidence): void {
    const early = this.#early.get(registerId) ?? [];
    const own = early.filter(({ from }) => from === added.from);
    if (own.length >= maxEarlyPerSender || early.length >= maxEarly) return;
    this.#early.set(registerId, [...early, added]);
  }

  #onNew(register: RegisterChain, evidence: PeerEvidence): void {
    const { log, append, onProven, broadcast, onEvidence } = this.#options;
    const known = this.#pool.find(register.id, evidence);
    if (known === undefined) return;
    const { height, validatorIds } = known;
    const { kind } = evidence;
    const registerId = register.id;
    onProven(kind);
    log.error(
      { registerId, height, kind, validatorIds, evidence },
      'a validator signed conflicting messages; the evidence is stored',
    );
    // The journal reports its own failure.
    append(evidenceRecord(registerId, known)).catch(() => {});
    broadcast(register, evidence);
    this.#haltFor(registerId, evidence);
    onEvidence(registerId);
  }

  /** Two certificates of one height: more members failed than the set tolerates, and no rule can choose between them. */
  #haltFor(registerId: string, evidence: PeerEvidence): void {
    if (evidence.kind !== 'conflicting-certificate') return;
    const reason = `two certificates exist for docket ${evidence.first.height}`;
    this.#options.find(registerId)?.halt(reason);
  }
}

/** Evidence as a log record. */
export function evidenceRecord(registerId: string, known: ProvenEvidence): LogRecord {
  const { evidence, networkId, validatorSetHash, signers, seenAtMs } = known;
  const proof = { networkId, validatorSetHash, signers, seenAtMs };
  return { kind: 'evidence', value: { registerId, evidence, proof } };
}
