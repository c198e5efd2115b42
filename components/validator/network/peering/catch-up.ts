import type { Verifier } from '#core/crypto/verify.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Docket } from '../../chain/building/docket.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isInactive } from '../../chain/sealing/status.ts';
import { isConsistent } from '../evidence/authenticate.ts';
import type { CommitBundle } from '../transport/transport.ts';
import type { Fetcher } from './fetch.ts';

interface CatchUpOptions {
  readonly self: string;
  readonly verifier: Verifier;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  readonly fetcher: Fetcher;
  /** The docket of a verified commit; undefined when its records are unavailable. */
  assemble(
    register: RegisterChain,
    bundle: CommitBundle,
    sources: readonly string[],
  ): Promise<Docket | undefined>;
  /** Fast-forwards to the register service's state when that is ahead; false when it is not. */
  fastForward(register: RegisterChain): Promise<boolean>;
  reportFault(validatorId: string, reason: string): void;
}

interface Job {
  /** Height that a peer claims to have reached. */
  target: number;
  /** Peers that claim it, most recent first. */
  sources: string[];
  attempts: number;
  isRunning: boolean;
}

/** Grace period: a docket that a peer has just decided is usually decided here a moment later. */
const graceMs = 150;
const retryMs = { first: 250, last: 4_000 } as const;
const maxAttempts = 10;
const maxSources = 8;
/** Registers caught up concurrently, which bounds the cost of a peer that claims to be ahead everywhere. */
const maxAtOnce = 8;

/**
 * Brings a register that fell behind up to date: docket by docket from any peer, each with its certificate and all records
 * verified; from the register service when no peer keeps them any more.
 */
export class CatchUp {
  readonly #options: CatchUpOptions;
  readonly #jobs = new Map<string, Job>();
  #running = 0;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** A peer has decided `target` dockets of a register. `isSure`: this height can no longer be decided here. */
  request(register: RegisterChain, from: string, target: number, isSure = false): void {
    const { height } = register.state;
    if (target <= height || isInactive(register)) return;
    const job = this.#jobs.get(register.id) ?? { target, sources: [], attempts: 0, isRunning: false };
    const isNew = !this.#jobs.has(register.id);
    job.target = Math.max(job.target, target);
    job.sources = [from, ...job.sources.filter((each) => each !== from)].slice(0, maxSources);
    this.#jobs.set(register.id, job);
    const isUrgent = isSure || target > height + 1;
    if (isNew || (isUrgent && !job.isRunning && job.attempts === 0)) {
      this.#schedule(register, job, isUrgent ? 0 : graceMs);
    }
  }

  #schedule(register: RegisterChain, job: Job, afterMs: number): void {
    this.#options.scheduler.set(`behind/${register.id}`, afterMs, () => void this.#run(register, job));
  }

  async #run(register: RegisterChain, job: Job): Promise<void> {
    if (job.isRunning) return;
    if (this.#running >= maxAtOnce) {
      this.#schedule(register, job, retryMs.first);
      return;
    }
    job.isRunning = true;
    this.#running += 1;
    try {
      while (register.state.height < job.target && !isInactive(register)) {
        if (!(await this.#step(register, job))) break;
        job.attempts = 0;
      }
    } catch (error) {
      this.#options.log.warn(
        { err: error, registerId: register.id },
        'catching up with the register failed; it is retried',
      );
    }
    job.isRunning = false;
    this.#running -= 1;
    const isDone = register.state.height >= job.target || isInactive(register);
    if (isDone || job.attempts >= maxAttempts) {
      this.#jobs.delete(register.id);
      return;
    }
    job.attempts += 1;
    this.#schedule(register, job, Math.min(retryMs.first * 2 ** (job.attempts - 1), retryMs.last));
  }

  /** Advances by one docket, or to the register service's state; false when no source could help. */
  async #step(register: RegisterChain, job: Job): Promise<boolean> {
    const { height } = register.state;
    const members = register.state.members.map((member) => member.validatorId);
    const sources = [...new Set([...job.sources, ...members])].filter((id) => id !== this.#options.self);
    for (const source of sources) {
      const bundle = await this.#options.fetcher.commit(source, register.id, height);
      if (register.state.height > height) return true;
      if (bundle === undefined || !this.#isProven(register, source, bundle)) continue;
      const docket = await this.#options.assemble(register, bundle, [source, ...sources]);
      if (register.state.height > height) return true;
      if (docket === undefined) continue;
      register.commit({ docket, certificate: bundle.certificate });
      return register.state.height > height;
    }
    return await this.#options.fastForward(register);
  }

  #isProven(register: RegisterChain, from: string, bundle: CommitBundle): boolean {
    const { state } = register;
    const { header, certificate } = bundle;
    const { members, networkId, registerId, rules } = state;
    const isPlaced = header.registerId === registerId && header.docketNumber === state.height;
    const isProven =
      isPlaced &&
      isConsistent(bundle) &&
      verifyCertificate(certificate, {
        members,
        networkId,
        registerId,
        signatureThresholdMin: rules.signatureThresholdMin,
        verifier: this.#options.verifier,
        docket: header,
      }).length === 0;
    // The request named this height, so any other content is a faulty answer.
    if (!isProven) this.#options.reportFault(from, 'commit');
    return isProven;
  }
}
