import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { Answer, Api, Call } from '../harness/api.ts';
import type { Person } from '../harness/governance.ts';
import { application } from '../harness/workflow.ts';

interface WorkflowLoadOptions {
  readonly api: Api;
  readonly registerId: string;
  readonly blueprintId: string;
  readonly applicant: Person;
  readonly officer: Person;
  readonly workers: number;
}

/** An answer that is neither a success nor an honest refusal for the time being. */
interface UnexpectedAnswer {
  readonly call: string;
  readonly status: number;
  readonly body: unknown;
}

const created = z.looseObject({ instanceId: z.string() });
const begun = z.looseObject({ operationId: z.string() });
const operation = z.looseObject({
  status: z.string(),
  transactionHash: z.string().nullable(),
  error: z.unknown(),
});

/** What leaves the fate of a request open: the service, or one that it calls, is away. */
const open = [502, 503, 504];
const pauseMs = 200;
const longestOutageMs = 120_000;

/**
 * Walks permits from their application to their collection, several side by side. A request that an outage refuses is
 * repeated with the same key until it is answered.
 */
export class WorkflowLoad {
  /** Completed instances, each with the transactions of its steps. */
  readonly completed = new Map<string, readonly string[]>();
  readonly unexpected: UnexpectedAnswer[] = [];
  /** Requests that were refused for the time being. */
  refused = 0;
  readonly #options: WorkflowLoadOptions;
  readonly #workers: Promise<void>[];
  #stopped = false;

  constructor(options: WorkflowLoadOptions) {
    this.#options = options;
    this.#workers = Array.from({ length: options.workers }, () => this.#work());
  }

  /** Begins no more instances, and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      const walked = await this.#walk();
      if (walked === undefined) return;
      this.completed.set(...walked);
    }
  }

  async #walk(): Promise<readonly [string, readonly string[]] | undefined> {
    const { applicant, officer, registerId, blueprintId } = this.#options;
    const json = { blueprintId, registerId };
    const made = await this.#ask(applicant, 'POST', '/api/instances/', { json });
    if (made?.status !== 201) return undefined;
    const { instanceId } = created.parse(made.body);
    const steps: readonly (readonly [Person, number, object])[] = [
      [applicant, 0, { ...application, floorAreaM2: 40 }],
      [officer, 2, { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' }],
      [applicant, 3, { collected: true }],
    ];
    const sealed: string[] = [];
    for (const [person, actionId, payloadData] of steps) {
      const txId = await this.#take(person, instanceId, actionId, payloadData);
      if (txId === undefined) return undefined;
      sealed.push(txId);
    }
    return [instanceId, sealed];
  }

  async #take(
    person: Person,
    instanceId: string,
    actionId: number,
    payloadData: object,
  ): Promise<string | undefined> {
    const path = `/api/instances/${instanceId}/actions/${actionId}/execute`;
    const json = { senderWallet: person.wallet.walletAddress, payloadData };
    const taken = await this.#ask(person, 'POST', path, { json });
    if (taken?.status !== 202) return undefined;
    const { operationId } = begun.parse(taken.body);
    for (const endsAt = performance.now() + longestOutageMs; performance.now() < endsAt; ) {
      const answer = await this.#ask(person, 'GET', `/api/operations/${operationId}`);
      if (answer === undefined) return undefined;
      const { status, transactionHash, error } = operation.parse(answer.body);
      if (status === 'Complete' && transactionHash !== null) return transactionHash;
      if (status === 'Failed') return this.#fail({ call: operationId, status: 0, body: error });
      await pause(pauseMs);
    }
    return this.#fail({ call: operationId, status: 0, body: 'not done' });
  }

  /** The answer of a request that is repeated while it is refused for the time being; undefined for a wrong answer. */
  async #ask(person: Person, method: string, path: string, call: Call = {}): Promise<Answer | undefined> {
    const headers = method === 'POST' ? { 'idempotency-key': randomUUID() } : {};
    const send = () => this.#options.api.send(method, path, { token: person.token, headers, ...call });
    for (const endsAt = performance.now() + longestOutageMs; performance.now() < endsAt; ) {
      const answer = await send().catch((error: Error) => error);
      if (answer instanceof Error)
        return this.#fail({ call: `${method} ${path}`, status: 0, body: String(answer.cause ?? answer) });
      if (answer.status < 300) return answer;
      if (!open.includes(answer.status))
        return this.#fail({ call: `${method} ${path}`, status: answer.status, body: answer.body });
      this.refused += 1;
      await pause(pauseMs);
    }
    return this.#fail({ call: `${method} ${path}`, status: 0, body: 'refused for too long' });
  }

  #fail(answer: UnexpectedAnswer): undefined {
    this.unexpected.push(answer);
    return undefined;
  }
}
