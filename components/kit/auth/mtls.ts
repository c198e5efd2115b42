import { type Agent, request } from 'node:https';
import type { PeerCertificate } from 'node:tls';
import { AppError } from '#core/errors/errors.ts';
import { judgeServer, readText } from '#kit/workload/server.ts';
import type { Workload } from '#kit/workload/workload.ts';

const timeoutMs = 10_000;
const bodyLimitBytes = 1024 * 1024;

export interface Address {
  readonly host: string;
  readonly port: number;
}

interface MtlsRequest {
  readonly workload: Workload;
  readonly address: Address;
  /** SPIFFE id that the server must have. */
  readonly expect: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>;
  /** `keptConnections` to the server; without them each request has a connection of its own. */
  readonly agent?: Agent;
}

interface MtlsAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends one HTTP request over mutual TLS 1.3 with the workload's current SVID. The server is verified by its SPIFFE id,
 * not by a host name.
 *
 * Errors: unavailable/SERVICE_UNAVAILABLE.
 */
export function requestOverMtls(options: MtlsRequest): Promise<MtlsAnswer> {
  const { workload, address, expect, method, path, form, agent } = options;
  const { key, cert, ca } = workload.current();
  const body = form === undefined ? undefined : new URLSearchParams(form).toString();
  const { promise, resolve, reject } = Promise.withResolvers<MtlsAnswer>();
  const fail = (cause: unknown) => reject(unreachable(address, cause));
  const outgoing = request(
    {
      host: address.host,
      port: address.port,
      method,
      path,
      key,
      cert,
      ca,
      minVersion: 'TLSv1.3',
      servername: 'chancery.internal',
      ...(agent === undefined
        ? {
            agent: false,
            checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
              judgeServer(certificate, expect),
          }
        : { agent }),
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && {
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': Buffer.byteLength(body),
        },
      }),
    },
    (answer) => {
      readText(answer, bodyLimitBytes).then(
        (text) => resolve({ status: answer.statusCode ?? 0, text }),
        fail,
      );
    },
  );
  outgoing.on('error', fail);
  outgoing.end(body);
  return promise;
}

function unreachable({ host, port }: Address, cause: unknown): AppError {
  const text = cause instanceof Error ? cause.message : 'unknown reason';
  return new AppError('unavailable', 'SERVICE_UNAVAILABLE', `${host}:${port} cannot be reached: ${text}`, {
    cause,
  });
}
