import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { ServiceName } from '../routing/table.ts';
import type { ClientFacts } from './client-address.ts';
import type { TraceStep } from './trace.ts';

/** One request on its way through the gateway. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query as they go to the service. */
  readonly target: string;
  /** Path without query, as the client sent it. */
  readonly path: string;
  readonly service: ServiceName;
  readonly client: ClientFacts;
  readonly trace: TraceStep;
}

/** How a call to a service failed. */
export interface CallFailure {
  /** `connect`: nothing was sent. `request`: no answer had begun. `response`: the answer broke off. */
  readonly stage: 'connect' | 'request' | 'response';
  readonly error: Error;
}

/** What undici's controller offers that we use. */
interface Controller {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

type WriteHead = (status: number, headers: IncomingHttpHeaders) => string[];

/**
 * Carries a service's answer to the client chunk by chunk, with back-pressure. The whole answer in one chunk (the
 * common case) goes out in one write.
 */
export class ResponseCarrier {
  readonly #response: ServerResponse;
  readonly #writeHead: WriteHead;
  readonly #settle: (failure: CallFailure | undefined) => void;
  #controller: Controller | undefined;
  #stage: CallFailure['stage'] = 'connect';
  #expectedBytes = -1;
  #receivedBytes = 0;
  #ended = false;

  constructor(
    response: ServerResponse,
    writeHead: WriteHead,
    settle: (failure: CallFailure | undefined) => void,
  ) {
    this.#response = response;
    this.#writeHead = writeHead;
    this.#settle = settle;
  }

  /** Gives the call up, because the client has gone or sent too much. */
  abort(reason: Error): void {
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    this.#stage = 'request';
    if (this.#response.destroyed) controller.abort(new Error('client closed the connection'));
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    const flat = this.#writeHead(status, headers);
    this.#stage = 'response';
    const length = headers['content-length'];
    if (length !== undefined) this.#expectedBytes = Number(length);
    this.#response.writeHead(status, flat);
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes === this.#expectedBytes) {
      this.#ended = true;
      this.#response.end(chunk);
      return;
    }
    if (this.#response.write(chunk)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    if (!this.#ended) this.#response.end();
    this.#settle(undefined);
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    this.#settle({ stage: this.#stage, error });
  }
}
