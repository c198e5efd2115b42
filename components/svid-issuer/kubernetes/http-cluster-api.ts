import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Dispatcher, Pool } from 'undici';
import { z } from 'zod';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { issuerError, refusal } from '../errors.ts';
import { type ClusterApi, type StoredKind, type StoredObject, tokenReview } from './cluster-api.ts';

const timeoutMs = 5_000;
const maxConnections = 8;
const bodyLimitBytes = 2 * 1024 * 1024;
const REVIEW_PATH = '/apis/authentication.k8s.io/v1/tokenreviews';

interface HttpClusterApiOptions {
  readonly host: string;
  readonly port: number;
  /** Files `token` and `ca.crt`, which the kubelet replaces while the process runs. */
  readonly credentialsDir: string;
  readonly namespace: string;
}

const keptObject = z.object({
  metadata: z.object({
    name: z.string(),
    resourceVersion: z.string().min(1),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  data: z.record(z.string(), z.string()).default({}),
});

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly body?: unknown;
}

/** The API server as seen by a pod: its address, its CA, and the pod's own token, read at each call. */
export class HttpClusterApi implements ClusterApi {
  readonly #options: HttpClusterApiOptions;
  #pool: Pool | undefined;
  #ca = '';

  constructor(options: HttpClusterApiOptions) {
    this.#options = options;
  }

  async reviewToken(token: string, audience: string) {
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [audience] },
    };
    try {
      const answer = await this.#call({ method: 'POST', path: REVIEW_PATH, body });
      return z.object({ status: tokenReview }).parse(answer).status;
    } catch (cause) {
      throw refusal('token_review', { cause });
    }
  }

  async read(kind: StoredKind, name: string): Promise<StoredObject> {
    return present(kind, await this.#call({ method: 'GET', path: this.#pathOf(kind, name) }));
  }

  async write(kind: StoredKind, object: StoredObject, data: Readonly<Record<string, string>>) {
    const values = Object.entries(data).map(([key, value]) => [key, encode(kind, value)]);
    const body = {
      metadata: { resourceVersion: object.resourceVersion },
      data: Object.fromEntries(values),
    };
    return present(kind, await this.#call({ method: 'PATCH', path: this.#pathOf(kind, object.name), body }));
  }

  async close(): Promise<void> {
    await this.#pool?.destroy();
  }

  #pathOf(kind: StoredKind, name: string): string {
    return `/api/v1/namespaces/${this.#options.namespace}/${kind}/${name}`;
  }

  async #call(call: Call): Promise<unknown> {
    try {
      const { pool, token } = await this.#connect();
      const answer = await pool.request({
        method: call.method,
        path: call.path,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          'user-agent': 'chancery-svid-issuer',
          'content-type': call.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        },
        body: call.body === undefined ? null : JSON.stringify(call.body),
        signal: AbortSignal.timeout(timeoutMs),
      });
      return await readAnswer(call, answer);
    } catch (cause) {
      if (isAppError(cause)) throw cause;
      const reason = cause instanceof Error ? cause.message : 'unknown reason';
      throw unavailable(`the API server gave no answer to ${call.method} ${call.path}: ${reason}`, cause);
    }
  }

  async #connect(): Promise<{ readonly pool: Pool; readonly token: string }> {
    const { credentialsDir, host, port } = this.#options;
    const [token, ca] = await Promise.all([
      readFile(join(credentialsDir, 'token'), 'utf8'),
      readFile(join(credentialsDir, 'ca.crt'), 'utf8'),
    ]);
    if (this.#pool === undefined || ca !== this.#ca) {
      const before = this.#pool;
      const name = host.includes(':') ? `[${host}]` : host;
      this.#pool = new Pool(`https://${name}:${port}`, {
        connect: { ca, timeout: timeoutMs },
        connections: maxConnections,
        allowH2: false,
        maxResponseSize: bodyLimitBytes,
      });
      this.#ca = ca;
      // Requests in flight over the old connections may finish.
      before?.close().catch(() => undefined);
    }
    return { pool: this.#pool, token: token.trim() };
  }
}

async function readAnswer(call: Call, answer: Dispatcher.ResponseData): Promise<unknown> {
  const text = await answer.body.text();
  if (answer.statusCode < 300) return JSON.parse(text);
  const told = z.object({ message: z.string() }).safeParse(tryJson(text));
  const reason = told.success ? told.data.message.slice(0, 512) : `status ${answer.statusCode}`;
  if (answer.statusCode === 404) throw issuerError('KUBERNETES_NOT_FOUND', reason);
  if (answer.statusCode === 409) throw issuerError('KUBERNETES_CONFLICT', reason);
  throw unavailable(`the API server refused ${call.method} ${call.path}: ${reason}`);
}

function unavailable(message: string, cause?: unknown): AppError {
  return issuerError('KUBERNETES_UNAVAILABLE', message, { cause });
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function present(kind: StoredKind, value: unknown): StoredObject {
  const parsed = keptObject.safeParse(value);
  if (!parsed.success)
    throw unavailable('the API server answered with something else than the object', parsed.error);
  const { metadata, data } = parsed.data;
  const values = Object.entries(data).map(([key, text]) => [key, decode(kind, text)]);
  return { ...metadata, data: Object.fromEntries(values) };
}

function encode(kind: StoredKind, text: string): string {
  return kind === 'secrets' ? Buffer.from(text, 'utf8').toString('base64') : text;
}

function decode(kind: StoredKind, text: string): string {
  return kind === 'secrets' ? Buffer.from(text, 'base64').toString('utf8') : text;
}
