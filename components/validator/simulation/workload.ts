import type { Random } from '#kit/testing/random.ts';
import { answerSubmission } from '../admission/answer-submission.ts';
import type { Engine } from '../engine.ts';
import type { TestKey } from '../testing/keys.ts';
import { type Signed, signedSubmission } from '../testing/submissions.ts';
import type { Agenda, Life } from './event-queue.ts';
import { short, type Trace } from './trace.ts';

export interface WorkloadOptions {
  readonly agenda: Agenda;
  readonly random: Random;
  readonly trace: Trace;
  readonly registerId: string;
  /** Prefix of a transaction in the trace; empty in a world with one register. */
  readonly label: string;
  readonly keys: readonly TestKey[];
  readonly startMs: number;
  /** Reachable processes, with the name of their identity. */
  reachable(): readonly Door[];
  /** Clients avoid some validators. */
  isTrusted(validatorId: string): boolean;
}

export interface Door {
  readonly validatorId: string;
  readonly life: Life;
  readonly engine: Engine;
}

export interface Accepted {
  readonly txId: string;
  /** Identities that acknowledged it. */
  readonly by: Set<string>;
  readonly atMs: number;
}

interface Asked {
  readonly door: Door;
  readonly signed: Signed;
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
  readonly #made: Signed[] = [];
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
  begin(validatorId: string, genesis: Signed): void {
    this.#open += 1;
    this.#offer(genesis, attempts * 10, (door) => door.validatorId === validatorId);
  }

  /** Plans transactions between two instants; some follow others, some compete for one predecessor. */
  plan(count: number, fromMs: number, toMs: number): void {
    const { agenda, random, trace, label, isTrusted } = this.#options;
    const trusted = (door: Door) => isTrusted(door.validatorId);
    this.#open += count;
    for (let index = 0; index < count; index += 1) {
      agenda.after(random.between(fromMs, toMs) - agenda.elapsedMs, () => {
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
  offer(signed: Signed): void {
    this.#open += 1;
    this.#offer(signed, attempts, ({ validatorId }) => this.#options.isTrusted(validatorId));
  }

  #make(index: number): Signed & { readonly previous: string | undefined } {
    const { agenda, random, registerId, keys, startMs } = this.#options;
    const follows = this.#made.length > 0 && random.chance(0.4);
    const previous = follows ? random.pick(this.#made.slice(-4)).txId : undefined;
    const createdAtMs = Math.floor(startMs + agenda.elapsedMs);
    const key = random.pick(keys);
    return { ...signedSubmission({ registerId, key, payload: { index }, previous, createdAtMs }), previous };
  }

  #offer(signed: Signed, left: number, isMeant: (door: Door) => boolean): void {
    const { agenda, random, reachable } = this.#options;
    const doors = reachable().filter(isMeant);
    const again = () => {
      if (left > 0) agenda.after(random.between(200, 1500), () => this.#offer(signed, left - 1, isMeant));
      else this.#close(signed, 'nobody answers');
    };
    if (doors.length === 0) {
      again();
      return;
    }
    const door = random.pick(doors);
    let isOver = false;
    const once = (act: () => void) => {
      if (!isOver) act();
      isOver = true;
    };
    agenda.after(answerMs, () =>
      once(() => {
        this.#unanswered.add(signed.txId);
        again();
      }),
    );
    agenda.after(
      random.between(0.2, 5),
      () => {
        void this.#ask(door, signed).then((answer) =>
          agenda.after(
            random.between(0.2, 5),
            () => once(() => this.#take({ door, signed }, answer, again)),
            door.life,
          ),
        );
      },
      door.life,
    );
  }

  #ask({ engine }: Door, signed: Signed) {
    const { agenda } = this.#options;
    const nowMs = () => agenda.clock(() => 0).nowMs();
    return answerSubmission({ admission: engine.admission, nowMs }, signed.text, { isRegisterService: true });
  }

  #take({ door, signed }: Asked, answer: { status: number; body: unknown }, again: () => void): void {
    const { agenda } = this.#options;
    const { txId } = signed;
    if (answer.status === 200) {
      const known = this.accepted.get(txId);
      if (known === undefined)
        this.accepted.set(txId, { txId, by: new Set([door.validatorId]), atMs: agenda.elapsedMs });
      known?.by.add(door.validatorId);
      this.#close(signed, `accepted by ${door.life.name}`);
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
    this.#close(signed, `refused by ${door.life.name}: ${code}`);
  }

  #close({ txId }: Signed, how: string): void {
    this.#open -= 1;
    this.#options.trace.add('client', `${short(txId)} ${how}`);
  }
}

/** Another record with the same id: the signature covers id and payload, not the metadata. */
function namesake({ txId, text }: Signed): Signed {
  return { txId, text: text.replace('"Metadata":{}', '"Metadata":{"place":"elsewhere"}') };
}

function codeOf(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('code' in body)) return 'UNKNOWN';
  return String(body.code);
}
