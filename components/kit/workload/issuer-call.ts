import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { z } from 'zod';
import type { IssuerSource } from './identity.ts';
import { judgeServer, readText } from './server.ts';
import { identityMissing } from './svid-holder.ts';

const timeoutMs = 10_000;
const bodyLimitBytes = 256 * 1024;
const retryAfterLimitSeconds = 60;

/** Path of the issuer's only route, and client id of its own SVID. */
const ISSUER_PATH = '/svid';
const ISSUER_CLIENT_ID = 'svid-issuer';

const pem = z.string().min(1).max(65_536);

/** The issuer's answer: PEM, leaf first, and the bundle of its trust domain. */
const issuerAnswer = z.object({
  spiffeId: z.string().max(2048),
  chain: pem,
  bundle: pem,
  expiresAt: z.iso.datetime(),
});
export type IssuerAnswer = z.output<typeof issuerAnswer>;

const problem = z.object({ code: z.string().max(64), detail: z.string().max(512) });

interface IssuerQuestion {
  readonly source: IssuerSource;
  readonly token: string;
  /** PEM. */
  readonly csr: string;
  /** PEM of the authorities that must have issued the issuer's own certificate. */
  readonly ca: string;
  readonly signal: AbortSignal;
}

/** The issuer answered with a refusal. */
export class IssuerRefusal extends Error {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.name = 'IssuerRefusal';
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Sends one request to the issuer over TLS 1.3. The server is verified by its SPIFFE id, not by a host name; the token
 * is sent only after that.
 *
 * Errors: IssuerRefusal; unavailable/WORKLOAD_IDENTITY_MISSING when the issuer cannot be reached or its answer is
 * invalid.
 */
export function askIssuer(question: IssuerQuestion): Promise<IssuerAnswer> {
  const { source, token, csr, ca, signal } = question;
  const body = JSON.stringify({ csr });
  const { promise, resolve, reject } = Promise.withResolvers<IssuerAnswer>();
  const fail = (cause: unknown) =>
    reject(cause instanceof IssuerRefusal ? cause : unreachable(source, cause));
  const expected = `spiffe://${source.installation}/service/${ISSUER_CLIENT_ID}`;
  const outgoing = request(
    new URL(ISSUER_PATH, source.url),
    {
      method: 'POST',
      ca,
      minVersion: 'TLSv1.3',
      agent: false,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      checkServerIdentity: (_host, certificate) => judgeServer(certificate, expected),
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    },
    (answer) => {
      readAnswer(answer).then(resolve, fail);
    },
  );
  outgoing.on('error', fail);
  outgoing.end(body);
  return promise;
}

async function readAnswer(answer: IncomingMessage): Promise<IssuerAnswer> {
  const text = await readText(answer, bodyLimitBytes);
  if (answer.statusCode === 200) return issuerAnswer.parse(JSON.parse(text));
  const told = problem.safeParse(tryJson(text));
  const reason = told.success ? `${told.data.code}: ${told.data.detail}` : `status ${answer.statusCode}`;
  const seconds = Number(answer.headers['retry-after'] ?? 0);
  const retryAfterMs = seconds > 0 ? Math.min(seconds, retryAfterLimitSeconds) * 1_000 : 0;
  throw new IssuerRefusal(`the issuer refused: ${reason}`, retryAfterMs);
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreachable(source: IssuerSource, cause: unknown) {
  const text = cause instanceof Error ? cause.message : 'unknown reason';
  return identityMissing(`the issuer at ${source.url} gave no SVID: ${text}`, cause);
}
