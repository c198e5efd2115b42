import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '#kit/log/log.ts';
import { gatewayProblems, rawProblem } from '../problem.ts';
import type { ServiceName } from '../routing/table.ts';
import type { ClientFacts } from './client-address.ts';
import { judgeFailure } from './failure.ts';
import { handshakeHeaders } from './request-headers.ts';
import type { TraceStep } from './trace.ts';
import type { Upstream } from './upstreams.ts';

export interface Handshake {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that came after the request's head. */
  readonly head: Buffer;
  readonly target: string;
  readonly path: string;
  readonly service: ServiceName;
  readonly client: ClientFacts;
  readonly trace: TraceStep;
}

export interface Tunnels {
  /** Carries a WebSocket handshake and everything after it to the service, byte by byte. */
  open(handshake: Handshake, upstream: Upstream | undefined): Promise<void>;
  /** Ends every open tunnel. */
  closeAll(): void;
}

export interface TunnelOptions {
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Open tunnels at a time; more are refused with 503. */
  readonly maxTunnels: number;
}

/** WebSocket pass-through: the service answers the handshake itself, on a connection of its own. */
export function createTunnels(options: TunnelOptions): Tunnels {
  const open = new Set<Duplex>();
  return {
    open: async (handshake, upstream) => {
      const { socket, request } = handshake;
      if (upstream === undefined || open.size >= options.maxTunnels)
        return refuse(handshake, options, undefined);
      open.add(socket);
      socket.once('close', () => open.delete(socket));
      socket.on('error', () => socket.destroy());
      try {
        const service = await upstream.current().openSocket();
        const lines = [`${request.method} ${handshake.target} HTTP/1.1`];
        const headers = handshakeHeaders(request, handshake.client, handshake.trace.traceparent);
        for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
        service.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
        if (handshake.head.length > 0) service.write(handshake.head);
        join(socket, service);
        handshake.trace.end(101);
      } catch (error) {
        refuse(handshake, options, error instanceof Error ? error : undefined);
      }
    },
    closeAll: () => {
      for (const socket of open) socket.destroy();
    },
  };
}

function join(client: Duplex, service: Duplex): void {
  service.on('error', () => client.destroy());
  service.once('close', () => client.destroy());
  client.once('close', () => service.destroy());
  if (client.destroyed) service.destroy();
  service.pipe(client);
  client.pipe(service);
}

function refuse(handshake: Handshake, options: TunnelOptions, error: Error | undefined): void {
  const verdict =
    error === undefined
      ? ({ code: 'SERVICE_UNAVAILABLE', detail: 'The service is not available.' } as const)
      : judgeFailure({ stage: 'connect', error });
  if (error !== undefined) {
    options.log.warn({ err: error, peer: handshake.service, code: verdict.code }, 'opening a tunnel failed');
  }
  const { path, trace } = handshake;
  trace.end(gatewayProblems[verdict.code].status);
  handshake.socket.end(rawProblem({ ...verdict, path, traceId: trace.traceId, nowMs: options.nowMs() }));
}
