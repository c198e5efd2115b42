import type { Random } from '#kit/testing/random.ts';
import type { Engine } from '../../engine.ts';
import { answerSubmission } from '../../surfaces/submissions/answer-submission.ts';
import type { TestKey } from '../keys.ts';
import { type Draft, type SignedSubmission, signedSubmission } from '../submissions.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';
import { short, type Trace } from './trace.ts';

export interface WorkloadOptions {
  readonly eventQueue: EventQueue;
  readonly random: Random;
  readonly trace: Trace;
  readonly registerId: string;
  /** Prefix of a transaction in the trace; empty in a world with one register. */
  readonly label: string;
  readonly keys: readonly TestKey[];
  readonly startMs: number;
  /** Reachable processes, with the name of their identity. */
  reachable(): readonly ClientEndpoint[];
  /** Clients avoid some validators. */
  isTrusted(validatorId: string): boolean;
}

export interface ClientEndpoint {
  readonly validatorId: string;
  readonly handle: ProcessHandle;
  readonly engine: Engine;
}

export interface Accepted {
  readonly txId: string;
  /** Identities that acknowledged it. */
  readonly by: Set<string>;
  readonly atMs: number;
}

interface SubmittedTo {
  readonly endpoint: ClientEndpoint;
  readonly signed: SignedSubmission;
}

const answerMs = 5000;
const attempts = 40;

/** Clients: they create transactions, submit them to any validator, and retry elsewhere without an answer. */
export class Workload {
  readonly accepted = new Map<string, Accepted>();
  /** Transactions that were permanently refused, with no answer of another validator outstanding: no validator has them. */
  readonly refused = new Set<string>();
  readonly #unanswered = new Set<string>();
  readonly #options: WorkloadOptions;
  readonly #made: SignedSubmission[] = [];
  readonly #drafts: Pick<Draft, 'key' | 'payload' | 'previous'>[] = [];
  #open = 0;

  constructor(options: WorkloadOptions) {
    this.#options = options;
  }

  /** Submissions without an answer. */
  get open(): number {
    return this.#open;
  }

  get made(): number {
    return this.#made.length;
  }

  /** Submits genesis like the register service: to one named member until it is accepted. */
  begin(validatorId: string, genesis: SignedSubmission): void {
    this.#open += 1;
    this.#offer(genesis, attempts * 10, (endpoint) => endpoint.validatorId === validatorId);
  }

  /** Plans transactions between two instants; some follow others, some compete for one predecessor. */
  plan(count: number, fromMs: number, toMs: number): void {
    const { eventQueue, random, trace, label, isTrusted } = this.#options;
    const trusted = (endpoint: ClientEndpoint) => isTrusted(endpoint.validatorId);
    this.#open += count;
    for (let index = 0; index < count; index += 1) {
      eventQueue.after(random.between(fromMs, toMs) - eventQueue.elapsedMs, () => {
        const signed = this.#make(index);
        this.#made.push(signed);
        trace.add('client', `makes ${label}${short(signed.txId)} after ${short(signed.previous)}`);
        this.#offer(signed, attempts, trusted);
        if (random.chance(0.05)) {
          this.#open += 1;
          this.#offer(namesake(signed), attempts, trusted);
        }
        if (random.chance(0.15)) {
          this.#open += 1;
          this.#offer(signed, attempts, trusted);
        }
      });
    }
  }

  /** Submits a given transaction. */
  offer(signed: SignedSubmission): void {
    this.#open += 1;
    this.#offer(signed, attempts, ({ validatorId }) => this.#options.isTrusted(validatorId));
  }

  /**
   * Submits an earlier transaction again, or a second one with its replay key, or a second one behind it; most are sealed by
   * then. Returns false before there is any.
   */
  repeat(random: Random): boolean {
    const { registerId, startMs, eventQueue, keys } = this.#options;
    if (this.#made.length === 0) return false;
    const place = random.whole(0, this.#made.length - 1);
    const [made, draft] = [this.#made[place], this.#drafts[place]];
    if (made === undefined || draft === undefined) return false;
    const createdAtMs = Math.floor(startMs + eventQueue.elapsedMs);
    const fork = { key: random.pick(keys), payload: { again: createdAtMs }, previous: made.txId };
    const [another] = random.shuffle([draft, fork]);
    const isSame = random.chance(0.4) || another === undefined;
    this.offer(isSame ? made : signedSubmission({ registerId, createdAtMs, ...another }));
    return true;
  }

  #make(index: number): SignedSubmission & { readonly previous: string | undefined } {
    const { eventQueue, random, registerId, keys, startMs } = this.#options;
    const follows = this.#made.length > 0 && random.chance(0.4);
    const previous = follows ? random.pick(this.#made.slice(-4)).txId : undefined;
    const createdAtMs = Math.floor(startMs + eventQueue.elapsedMs);
    const key = random.pick(keys);
    const draft = { key, payload: { index }, previous };
    this.#drafts.push(draft);
    return { ...signedSubmission({ registerId, createdAtMs, ...draft }), previous };
  }

  #offer(signed: SignedSubmission, left: number, isMeant: (endpoint: ClientEndpoint) => boolean): void {
    const { eventQueue, random, reachable } = this.#options;
    const endpoints = reachable().filter(isMeant);
    const again = () => {
      if (left > 0) eventQueue.after(random.between(200, 1500), () => this.#offer(signed, left - 1, isMeant));
      else this.#close(signed, 'no member answers');
    };
    if (endpoints.length === 0) {
      again();
      return;
    }
    const endpoint = random.pick(endpoints);
    let isOver = false;
    const once = (act: () => void) => {
      if (!isOver) act();
      isOver = true;
    };
    eventQueue.after(answerMs, () =>
      once(() => {
        this.#unanswered.add(signed.txId);
        again();
      }),
    );
    eventQueue.after(
      random.between(0.2, 5),
      () => {
        void this.#ask(endpoint, signed).then((answer) =>
          eventQueue.after(
            random.between(0.2, 5),
            () => once(() => this.#take({ endpoint, signed }, answer, again)),
            endpoint.handle,
          ),
        );
      },
      endpoint.handle,
    );
  }

  #ask({ engine }: ClientEndpoint, signed: SignedSubmission) {
    const { eventQueue } = this.#options;
    const nowMs = () => eventQueue.clock(() => 0).nowMs();
    return answerSubmission({ admission: engine.admission, nowMs }, signed.text, { isRegisterService: true });
  }

  #take(
    { endpoint, signed }: SubmittedTo,
    answer: { status: number; body: unknown },
    again: () => void,
  ): void {
    const { eventQueue } = this.#options;
    const { txId } = signed;
    if (answer.status === 200) {
      const known = this.accepted.get(txId);
      if (known === undefined)
        this.accepted.set(txId, { txId, by: new Set([endpoint.validatorId]), atMs: eventQueue.elapsedMs });
      known?.by.add(endpoint.validatorId);
      this.#close(signed, `accepted by ${endpoint.handle.name}`);
      return;
    }
    if (answer.status === 503) this.#unanswered.add(txId);
    if (answer.status === 503 || answer.status === 429 || answer.status === 404) {
      again();
      return;
    }
    const code = codeOf(answer.body);
    // The validator may lack the predecessor, so the client retries, as it would after a 422.
    if (code === 'VAL_CHAIN_001') {
      again();
      return;
    }
    if (!this.#unanswered.has(txId)) this.refused.add(txId);
    this.#close(signed, `refused by ${endpoint.handle.name}: ${code}`);
  }

  #close({ txId }: SignedSubmission, how: string): void {
    this.#open -= 1;
    this.#options.trace.add('client', `${short(txId)} ${how}`);
  }
}

/** Another record with the same id: the signature covers id and payload, not the metadata. */
function namesake({ txId, text }: SignedSubmission): SignedSubmission {
  return { txId, text: text.replace('"Metadata":{}', '"Metadata":{"place":"elsewhere"}') };
}

function codeOf(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('code' in body)) return 'UNKNOWN';
  return String(body.code);
}
