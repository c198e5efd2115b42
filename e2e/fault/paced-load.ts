import type { Pool } from 'undici';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';

/** Where the load goes, and how dense it is. */
export interface PacedLoadOptions {
  readonly registerId: string;
  /** Of the whole load, at any listener: as many are sent however long answers take. */
  readonly perSecond: number;
  /** The validators' listeners. */
  readonly pools: readonly Pool[];
  /** An access token that is valid now. */
  readonly token: () => string;
}

const path = '/api/v1/transactions/validate';
const tickMs = 100;
/** Under way at most: beyond that the system does not keep up, and the load says so instead of queueing. */
const widest = 1_000;
/** A transaction is offered again until this is over, milliseconds. */
const patienceMs = 30_000;
/** Refusals for the time being. */
const timely = new Set([429, 503]);

/**
 * A steady stream of transactions signed outside, spread over all validators. One whose answer is lost or a refusal for
 * the time being is offered to the next validator, as the same transaction.
 */
export class PacedLoad {
  /** Ids that a validator answered for with 200. */
  readonly accepted: string[] = [];
  /** Answers that no client should see, and transactions that nobody took in time. */
  readonly unexpected: string[] = [];
  /** Offers that had to be made again. */
  again = 0;
  /** Transactions that were not sent because too many were under way. */
  skipped = 0;
  readonly #options: PacedLoadOptions;
  readonly #keys = Array.from({ length: 50 }, createOutsideKey);
  readonly #underWay = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #sent = 0;
  #owed = 0;

  constructor(options: PacedLoadOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Ends the load and waits for what is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#underWay);
  }

  #tick(): void {
    this.#owed += (this.#options.perSecond * tickMs) / 1000;
    for (; this.#owed >= 1; this.#owed -= 1) {
      if (this.#underWay.size >= widest) {
        this.skipped += 1;
        continue;
      }
      const offered = this.#offer(this.#sent++).finally(() => this.#underWay.delete(offered));
      this.#underWay.add(offered);
    }
  }

  async #offer(n: number): Promise<void> {
    const { registerId, pools } = this.#options;
    const key = this.#keys[n % this.#keys.length] ?? createOutsideKey();
    const submission = signSubmission(key, { registerId, payload: { n, at: Date.now() } });
    const body = JSON.stringify(submission);
    const deadline = performance.now() + patienceMs;
    let last = '';
    for (let turn = n; performance.now() < deadline; turn += 1) {
      const answer = await this.#post(pools[turn % pools.length], body);
      if (answer.status === 200) {
        this.accepted.push(submission.TransactionId);
        return;
      }
      last = answer.text;
      if (!answer.isOpen) break;
      this.again += 1;
      await new Promise((resolve) => setTimeout(resolve, tickMs));
    }
    this.unexpected.push(last);
  }

  /** `isOpen`: nothing speaks against offering the transaction to another validator. */
  async #post(
    pool: Pool | undefined,
    body: string,
  ): Promise<{ status: number; text: string; isOpen: boolean }> {
    if (pool === undefined) throw new RangeError('there is no listener to send to');
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${this.#options.token()}` };
    try {
      const answer = await pool.request({ path, method: 'POST', headers, body, headersTimeout: 10_000 });
      const text = `${answer.statusCode} ${await answer.body.text()}`;
      return { status: answer.statusCode, text, isOpen: timely.has(answer.statusCode) };
    } catch (error) {
      return { status: 0, text: String(error), isOpen: true };
    }
  }
}
