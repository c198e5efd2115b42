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
/** Longer than the gateway's own timeout. */
const timeoutMs = 90_000;
/** An ingress controller that reloads its configuration refuses connections for a shorter time. */
const retryMs = 1_000;

/** Clients that call each service through the gateway five times per second, each time with a new connection. */
export class ApiClients {
  /** Transactions that were accepted. */
  readonly accepted = new Set<string>();
  /** Failed responses. */
  readonly unexpected: { readonly status: number; readonly body: unknown }[] = [];
  answered = 0;
  /** Connections that the ingress refused; they are retried. */
  refusedConnections = 0;
  /** Transactions that were submitted again after a 502, because their validator was stopped meanwhile. */
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
    const workers = [...reads.map((call) => async () => void (await this.#call(call))), () => this.#submit()];
    this.#workers = workers.map((act) => this.#repeat(act));
  }

  /** Stops the calls and waits for pending ones. */
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
    if (await this.#call(call)) this.accepted.add(json.TransactionId);
  }

  /** Sends a call; returns whether the status is 200. A transaction may be submitted again with the same id after a 502, whose effect is unknown. */
  async #call(call: Call): Promise<boolean> {
    let { status, body } = await this.#send(call);
    if (call.method === 'POST' && status === 502) {
      this.repeated += 1;
      ({ status, body } = await this.#send(call));
    }
    this.answered += 1;
    if (status !== 200)
      this.unexpected.push({ status, body: `${new Date().toISOString()} ${call.path}: ${body}` });
    return status === 200;
  }

  async #send(call: Call): Promise<Answer> {
    const givenUpAt = performance.now() + retryMs;
    for (;;) {
      try {
        return await send(new URL(call.path, this.#ledger.api.baseUrl), call);
      } catch (error) {
        if (performance.now() > givenUpAt) return { status: 0, body: String(error) };
        this.refusedConnections += 1;
        await pause(50);
      }
    }
  }
}

function send(url: URL, { method, token, json }: Call): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, ...(json && { 'content-type': 'application/json' }) };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const outgoing = request(url, { method, headers, agent: false, signal }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString() }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(json && JSON.stringify(json));
  });
}
