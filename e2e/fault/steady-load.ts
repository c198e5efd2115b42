import type { Api } from '../harness/api.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';

/** Where the load goes, and how often each worker sends. */
export interface LoadOptions {
  readonly api: Api;
  readonly token: string;
  readonly registerId: string;
  readonly workers: number;
  /** Pause of one worker between two submissions, milliseconds. */
  readonly pauseMs: number;
  /** Counts the pause from the beginning of a submission: as many are sent however long answers take. */
  readonly isPaced?: boolean;
  /** Statuses that leave the fate of a transaction open; 503 when absent. */
  readonly open?: readonly number[];
}

/** An answer that is neither an acceptance nor an honest refusal, as a person would want to read it. */
interface Unexpected {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Steady load of transactions signed outside. It remembers what was accepted (200), what was refused for the time
 * being and everything else, and resubmits a transaction whose answer left its fate open.
 */
export class SteadyLoad {
  readonly accepted = new Set<string>();
  /** Ids that were seen confirmed while the load ran. */
  readonly confirmed = new Set<string>();
  readonly unexpected: Unexpected[] = [];
  refused = 0;
  readonly #options: LoadOptions;
  readonly #workers: Promise<void>[];
  #stopped = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#workers = Array.from({ length: options.workers }, () => this.#work());
  }

  /** Ends the load and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    const { registerId, pauseMs, isPaced = false } = this.#options;
    const key = createOutsideKey();
    let earlier: string | undefined;
    for (let n = 0; !this.#stopped; n++) {
      const begunAt = performance.now();
      const submission = signSubmission(key, { registerId, payload: { n, at: Date.now() } });
      await this.#submit(submission);
      await this.#look(earlier);
      earlier = this.accepted.has(submission.TransactionId) ? submission.TransactionId : earlier;
      const spentMs = isPaced ? performance.now() - begunAt : 0;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, pauseMs - spentMs)));
    }
  }

  async #submit(submission: ReturnType<typeof signSubmission>): Promise<void> {
    const { api, token, open = [503] } = this.#options;
    const send = () => api.send('POST', '/api/v1/transactions/validate', { token, json: submission });
    let answer = await send();
    for (let again = 0; open.includes(answer.status) && again < 2; again++) {
      this.refused++;
      answer = await send();
    }
    if (answer.status === 200) this.accepted.add(submission.TransactionId);
    else if (open.includes(answer.status)) this.refused++;
    else this.unexpected.push({ status: answer.status, body: answer.body });
  }

  /** Asks for the transaction before, which had a moment to be sealed. */
  async #look(txId: string | undefined): Promise<void> {
    if (txId === undefined) return;
    const { api, token, registerId, open = [503] } = this.#options;
    const answer = await api.send('GET', `/api/registers/${registerId}/transactions/${txId}`, { token });
    if (answer.status === 200) {
      if ((answer.body as { status: string }).status === 'confirmed') this.confirmed.add(txId);
    } else if (answer.status !== 404 && !open.includes(answer.status)) {
      this.unexpected.push({ status: answer.status, body: answer.body });
    }
  }
}
