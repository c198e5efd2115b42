import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '#kit/clock/clock.ts';
import { createAuthority } from '../../authority/testing/create-authority.ts';
import type { StoredKind } from '../cluster-api.ts';

/** Content of a token of the fake. */
export interface FakeToken {
  readonly username: string;
  readonly audiences: readonly string[];
  readonly pod?: string;
  /** Milliseconds since the epoch; an hour from now when absent. */
  readonly expiresAtMs?: number;
}

interface FakeObject {
  resourceVersion: number;
  annotations: Record<string, string>;
  data: Record<string, string>;
}

/** Serves, refuses every request like RBAC, or breaks connections. */
export type FakeMode = 'serves' | 'forbids' | 'breaks';

const namespace = 'acme';

/** The part of an API server that the issuer uses: TLS, bearer tokens, TokenReviews, Secrets and ConfigMaps. */
export class FakeApiServer {
  readonly host = 'localhost';
  readonly namespace = namespace;
  readonly credentialsDir = mkdtempSync(join(tmpdir(), 'chy-kube-'));
  mode: FakeMode = 'serves';
  /** Fails reviews only. */
  reviewsFail = false;
  /** `METHOD path` of every request, oldest first. */
  readonly requests: string[] = [];
  readonly #tokens = new Map<string, FakeToken>();
  readonly #objects = new Map<string, FakeObject>();
  #ownToken = '';
  #server: Server | undefined;
  #port = 0;

  get port(): number {
    return this.#port;
  }

  async start(): Promise<this> {
    await this.newCertificate();
    this.rotateOwnToken();
    return this;
  }

  /** A new CA and certificate on the same port, as after a rotation of the cluster's CA. */
  async newCertificate(): Promise<void> {
    const authority = await createAuthority('kubernetes.local', systemClock());
    const { certificatePem, keyPem } = await authority.issue({
      uris: [],
      dnsNames: [this.host],
      commonName: 'kube-apiserver',
      notBeforeMs: Date.now() - 60_000,
      notAfterMs: Date.now() + 3_600_000,
    });
    writeFileSync(join(this.credentialsDir, 'ca.crt'), authority.certificatePem);
    const credentials = { cert: certificatePem, key: keyPem };
    if (this.#server === undefined) await this.#listen(credentials);
    else {
      this.#server.setSecureContext(credentials);
      this.#server.closeAllConnections();
    }
  }

  /** Replaces the pod's own token; the former one is refused from now on. */
  rotateOwnToken(): void {
    this.#ownToken = `own-${randomUUID()}`;
    writeFileSync(join(this.credentialsDir, 'token'), `${this.#ownToken}\n`);
  }

  /** A token that reviews accept. */
  token(given: FakeToken): string {
    const token = `token-${randomUUID()}`;
    this.#tokens.set(token, given);
    return token;
  }

  /** Creates an object without data. */
  put(kind: StoredKind, name: string): void {
    this.#objects.set(`${kind}/${name}`, { resourceVersion: 1, annotations: {}, data: {} });
  }

  annotate(kind: StoredKind, name: string, annotations: Readonly<Record<string, string>>): void {
    const object = this.#get(kind, name);
    Object.assign(object.annotations, annotations);
    object.resourceVersion += 1;
  }

  /** The data of an object as a client of the API reads it. */
  data(kind: StoredKind, name: string): Readonly<Record<string, string>> {
    const decode = (value: string) =>
      kind === 'secrets' ? Buffer.from(value, 'base64').toString('utf8') : value;
    const { data } = this.#get(kind, name);
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decode(value)]));
  }

  /** Sets data as another client of the API would. */
  setData(kind: StoredKind, name: string, data: Readonly<Record<string, string>>): void {
    const object = this.#get(kind, name);
    object.data = { ...data };
    object.resourceVersion += 1;
  }

  async stop(): Promise<void> {
    await this.#close();
    rmSync(this.credentialsDir, { recursive: true });
  }

  #get(kind: StoredKind, name: string): FakeObject {
    const object = this.#objects.get(`${kind}/${name}`);
    if (object === undefined) throw new Error(`no ${kind} ${name}`);
    return object;
  }

  async #listen(credentials: { readonly cert: string; readonly key: string }): Promise<void> {
    const server = createServer(credentials, (request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, '127.0.0.1', resolve);
    await promise;
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async #close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    server.close(() => resolve());
    server.closeAllConnections();
    await promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    this.requests.push(`${request.method} ${path}`);
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body: unknown =
      chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString('utf8'));
    const isReview = path === '/apis/authentication.k8s.io/v1/tokenreviews';
    if (this.mode === 'breaks') response.destroy();
    else if (request.headers.authorization !== `Bearer ${this.#ownToken}`)
      send(response, 401, 'Unauthorized');
    else if (this.mode === 'forbids' || (isReview && this.reviewsFail))
      send(response, 403, 'forbidden by RBAC');
    else if (isReview) this.#review(response, body);
    else this.#object(request, response, body);
  }

  #review(response: ServerResponse, body: unknown): void {
    const { spec } = z
      .object({ spec: z.object({ token: z.string(), audiences: z.array(z.string()) }) })
      .parse(body);
    const known = this.#tokens.get(spec.token);
    const audiences = spec.audiences.filter((audience) => known?.audiences.includes(audience));
    const isOld = (known?.expiresAtMs ?? Number.POSITIVE_INFINITY) <= Date.now();
    if (known === undefined || isOld || audiences.length === 0) {
      json(response, 201, { status: { authenticated: false, user: {}, error: 'invalid bearer token' } });
      return;
    }
    const extra = known.pod === undefined ? {} : { 'authentication.kubernetes.io/pod-name': [known.pod] };
    const user = { username: known.username, uid: randomUUID(), groups: ['system:authenticated'], extra };
    json(response, 201, { status: { authenticated: true, audiences, user } });
  }

  #object(request: IncomingMessage, response: ServerResponse, body: unknown): void {
    const path = `/api/v1/namespaces/${namespace}/`;
    const key = (request.url ?? '').startsWith(path) ? (request.url ?? '').slice(path.length) : '';
    const object = this.#objects.get(key);
    if (object === undefined) {
      send(response, 404, `${key} not found`);
      return;
    }
    if (request.method === 'PATCH') {
      const patch = z
        .object({
          metadata: z.object({ resourceVersion: z.string() }),
          data: z.record(z.string(), z.string()),
        })
        .parse(body);
      if (patch.metadata.resourceVersion !== String(object.resourceVersion)) {
        send(response, 409, 'the object has been modified');
        return;
      }
      Object.assign(object.data, patch.data);
      object.resourceVersion += 1;
    }
    json(response, 200, {
      metadata: {
        name: key.split('/')[1],
        resourceVersion: String(object.resourceVersion),
        annotations: object.annotations,
      },
      ...(Object.keys(object.data).length > 0 ? { data: object.data } : {}),
    });
  }
}

function send(response: ServerResponse, status: number, message: string): void {
  json(response, status, { kind: 'Status', status: 'Failure', message });
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
