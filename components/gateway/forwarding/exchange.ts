import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { elsewhereHeader } from '#kit/http/http.ts';
import type { ClientFacts } from './client-address.ts';
import type { TraceStep } from './trace.ts';

/** One request that is being forwarded. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query sent to the service. */
  readonly target: string;
  /** Path without query, as received from the client. */
  readonly path: string;
  readonly service: string;
  /** Largest request body of the path; undefined for the bound of all others. */
  readonly bodyLimitBytes?: number | undefined;
  readonly client: ClientFacts;
  readonly trace: TraceStep;
}

/** A failed call to a service. */
export interface CallFailure {
  /**
   * `connect`: nothing was sent. `request`: no answer had begun. `refused`: the service states that nothing was done
   * and that another endpoint may do it. `response`: the answer broke off.
   */
  readonly stage: 'connect' | 'request' | 'refused' | 'response';
  readonly error: Error;
}

/** The members of undici's controller in use. */
interface Controller {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/** Handles the answer to one attempt. */
interface Reception {
  /** The headers for the client. */
  headersOf(headers: IncomingHttpHeaders): string[];
  /** Whether a refusal with which nothing was done is withheld from the client, and another endpoint called. */
  asksElsewhere(): boolean;
  /** Called once, at the end. */
  settle(failure: CallFailure | undefined): void;
  /**
   * The answer is a stream or a held poll: its head is sent at once, and a client that reads nothing for `stalledMs`
   * while data waits is disconnected.
   */
  readonly streams?: { readonly stalledMs: number };
}

/**
 * Streams a service's answer to the client, with back-pressure. A whole answer in one chunk (the common case) is sent
 * in one write.
 */
export class ResponseCarrier {
  readonly #response: ServerResponse;
  readonly #reception: Reception;
  #controller: Controller | undefined;
  #stage: CallFailure['stage'] = 'connect';
  #expectedBytes = -1;
  #receivedBytes = 0;
  #ended = false;

  constructor(response: ServerResponse, reception: Reception) {
    this.#response = response;
    this.#reception = reception;
  }

  /** Aborts the call, because the client disconnected or sent too much. */
  abort(reason: Error): void {
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    this.#stage = 'request';
    if (this.#response.destroyed) controller.abort(new Error('the client closed the connection'));
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (isForElsewhere(status, headers) && this.#reception.asksElsewhere()) {
      this.#stage = 'refused';
      return;
    }
    const flat = this.#reception.headersOf(headers);
    this.#stage = 'response';
    const length = headers['content-length'];
    if (length !== undefined) this.#expectedBytes = Number(length);
    this.#response.writeHead(status, flat);
    if (this.#reception.streams !== undefined && length === undefined) this.#response.flushHeaders();
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#stage === 'refused') return;
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes === this.#expectedBytes) {
      this.#ended = true;
      this.#response.end(chunk);
      return;
    }
    if (this.#response.write(chunk)) return;
    controller.pause();
    const unwatch = this.#watchStall();
    this.#response.once('drain', () => {
      unwatch();
      controller.resume();
    });
  }

  /** Returns the function that stops the watch. */
  #watchStall(): () => void {
    const { streams } = this.#reception;
    if (streams === undefined) return () => undefined;
    const timer = setTimeout(() => this.#response.destroy(), streams.stalledMs);
    const stop = () => clearTimeout(timer);
    this.#response.once('close', stop);
    return () => {
      stop();
      this.#response.off('close', stop);
    };
  }

  onResponseEnd(): void {
    if (this.#stage === 'refused') {
      this.#reception.settle({ stage: 'refused', error: new Error('the endpoint accepts no requests') });
      return;
    }
    if (!this.#ended) this.#response.end();
    this.#reception.settle(undefined);
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    this.#reception.settle({ stage: this.#stage, error });
  }
}

/** Whether a service states that it has done nothing and another process of its kind may. */
function isForElsewhere(status: number, headers: IncomingHttpHeaders): boolean {
  return status === 503 && headers[elsewhereHeader] !== undefined;
}
