import { request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import type { Ledger } from './ledger-under-load.ts';

interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly token: string;
  readonly json?: object;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

const everyMs = 200;
/** The gateway gives up a service sooner. */
const answerMs = 90_000;
/** An ingress that loads its configuration anew refuses connections for less than that. */
const unheardMs = 1_000;

/** Who asks each service through the gateway five times a second, by a connection of its own each time. */
export class Callers {
  /** Transactions that were accepted. */
  readonly accepted = new Set<string>();
  /** Every answer that is none. */
  readonly unexpected: { readonly status: number; readonly body: unknown }[] = [];
  answered = 0;
  /** Connections that the ingress did not take; they are tried again. */
  unheard = 0;
  /** Transactions that were given once more, because their validator went away while it had them. */
  repeated = 0;
  readonly #ledger: Ledger;
  readonly #key = createOutsideKey();
  readonly #workers: readonly Promise<void>[];
  #isStopped = false;

  constructor(ledger: Ledger, organizationId: string) {
    this.#ledger = ledger;
    const { root, token, registerId } = ledger;
    const reads: readonly Call[] = [
      { method: 'GET', path: `/api/organizations/${organizationId}`, token: root },
      { method: 'GET', path: '/api/wallets', token },
      { method: 'GET', path: `/api/registers/${registerId}`, token },
    ];
    const workers = [...reads.map((call) => async () => void (await this.#ask(call))), () => this.#submit()];
    this.#workers = workers.map((act) => this.#repeat(act));
  }

  /** Ends the calls and waits for those under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#workers);
  }

  async #repeat(act: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await act();
      await pause(everyMs);
    }
  }

  async #submit(): Promise<void> {
    const { registerId, token } = this.#ledger;
    const json = signSubmission(this.#key, { registerId, payload: { at: Date.now() } });
    const call = { method: 'POST', path: '/api/v1/transactions/validate', token, json } as const;
    if (await this.#ask(call)) this.accepted.add(json.TransactionId);
  }

  /** Whether it was answered with 200. A transaction has one id, however often it is given: 502 says that nobody knows. */
  async #ask(call: Call): Promise<boolean> {
    let { status, body } = await this.#hear(call);
    if (call.method === 'POST' && status === 502) {
      this.repeated += 1;
      ({ status, body } = await this.#hear(call));
    }
    this.answered += 1;
    if (status !== 200)
      this.unexpected.push({ status, body: `${new Date().toISOString()} ${call.path}: ${body}` });
    return status === 200;
  }

  async #hear(call: Call): Promise<Answer> {
    const givenUpAt = performance.now() + unheardMs;
    for (;;) {
      try {
        return await send(new URL(call.path, this.#ledger.api.baseUrl), call);
      } catch (error) {
        if (performance.now() > givenUpAt) return { status: 0, body: String(error) };
        this.unheard += 1;
        await pause(50);
      }
    }
  }
}

function send(url: URL, { method, token, json }: Call): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, ...(json && { 'content-type': 'application/json' }) };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(answerMs);
    const asked = request(url, { method, headers, agent: false, signal }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString() }),
      );
    });
    asked.on('error', reject);
    asked.end(json && JSON.stringify(json));
  });
}
