import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '#kit/config/config.ts';
import type { Component } from '#kit/lifecycle/lifecycle.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import type { IssuerSource } from '#kit/workload/workload.ts';
import { BUNDLE_KEY, type KeeperTiming } from './authority/keeper.ts';
import { createSvidIssuerOf } from './compose.ts';
import { type SvidIssuerConfig, svidIssuerSettings } from './config.ts';
import { FakeApiServer, type FakeToken } from './kubernetes/testing/fake-api-server.ts';

export const installation = 'acme.chancery.local';
export const audience = `spiffe://${installation}/service/svid-issuer`;

const timing: KeeperTiming = { pollMs: 50, staleMs: 1_500, overlapMs: 5_500, startMs: 5_000 };

export interface SvidRequest {
  readonly token?: string | undefined;
  readonly body: string;
}

export interface SvidResponse {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The files that the kubelet mounts, and their renewal. */
interface PodFiles {
  readonly tokenFile: string;
  readonly caFile: string;
  refresh(): void;
}

/** An issuer on loopback with a fake cluster, and pods with tokens of that cluster. */
export class IssuerWorld {
  readonly runtime: TestRuntime = testRuntime('svid-issuer');
  readonly #folder = mkdtempSync(join(tmpdir(), 'chy-issuer-'));
  readonly #ttlSeconds: number;
  #issuer: Component | undefined;
  #port = 0;
  readonly server: FakeApiServer;

  private constructor(server: FakeApiServer, ttlSeconds: number) {
    this.server = server;
    this.#ttlSeconds = ttlSeconds;
  }

  static async open(ttlSeconds = 3600): Promise<IssuerWorld> {
    const server = await new FakeApiServer().start();
    server.put('secrets', 'chancery-identity-authority');
    server.put('configmaps', 'chancery-identity-ca');
    const world = new IssuerWorld(server, ttlSeconds);
    await world.startIssuer();
    return world;
  }

  /** Opens the issuer; on the same port as before, if there was one. */
  async startIssuer(): Promise<void> {
    this.#issuer = await createSvidIssuerOf(() => timing)(this.config(), this.runtime);
    this.#port = Number(this.#issuer.addresses.https?.split(':')[1]);
  }

  async stopIssuer(): Promise<void> {
    await this.#issuer?.stop();
  }

  config(): SvidIssuerConfig {
    const config = loadConfig(svidIssuerSettings, this.environment(this.#port));
    // Shorter than the setting allows.
    return { ...config, CHANCERY_SVID_TTL_SECONDS: this.#ttlSeconds };
  }

  /** Settings of the issuer's process. */
  environment(port: number): Readonly<Record<string, string>> {
    return {
      CHANCERY_INSTALLATION: installation,
      CHANCERY_LISTEN_HOST: '127.0.0.1',
      CHANCERY_OPS_PORT: '0',
      CHANCERY_ISSUER_PORT: String(port),
      CHANCERY_NAMESPACE: this.server.namespace,
      CHANCERY_SERVICE_ACCOUNTS: 'service-wallet,service-register,service-operator',
      CHANCERY_KUBERNETES_CREDENTIALS_DIR: this.server.credentialsDir,
      KUBERNETES_SERVICE_HOST: this.server.host,
      KUBERNETES_SERVICE_PORT: String(this.server.port),
    };
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  get ops(): string {
    return `http://${this.#issuer?.addresses.ops}`;
  }

  get bundle(): string {
    return this.server.data('configmaps', 'chancery-identity-ca')[BUNDLE_KEY] ?? '';
  }

  /** A token for the issuer; members of `other` make it another one. */
  token(account: string, other: Partial<FakeToken> = {}): string {
    const username = `system:serviceaccount:${this.server.namespace}:${account}`;
    return this.server.token({ username, audiences: [audience], ...other });
  }

  /** The files that the kubelet mounts into a pod. */
  pod(account: string, pod: string): IssuerSource & PodFiles {
    const tokenFile = join(this.#folder, `${pod}.token`);
    const caFile = join(this.#folder, `${pod}.crt`);
    const refresh = () => {
      writeFileSync(tokenFile, this.token(account, { pod }));
      writeFileSync(caFile, this.bundle);
    };
    refresh();
    return { url: this.url, installation, tokenFile, caFile, refresh };
  }

  /** One request of a caller. */
  ask({ token, body }: SvidRequest): Promise<SvidResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<SvidResponse>();
    const headers = {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const options = { method: 'POST', ca: this.bundle, servername: 'svid-issuer', agent: false, headers };
    const outgoing = request(`${this.url}/svid`, options, (answer) => {
      answer
        .setEncoding('utf8')
        .reduce((text, part) => text + part, '')
        .then((text) => resolve({ status: answer.statusCode ?? 0, body: JSON.parse(text) }))
        .catch(reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
    return promise;
  }

  /** Value of a counter of the issuer, by its full name with labels. */
  async metric(name: string): Promise<number> {
    const text = await this.runtime.telemetry.registry.metrics();
    const line = text.split('\n').find((one) => one.startsWith(`chancery_svid_issuer_${name} `));
    return Number(line?.split(' ')[1] ?? 0);
  }

  write(name: string, text: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, text);
    return path;
  }

  read(path: string): string {
    return readFileSync(path, 'utf8');
  }

  async stop(): Promise<void> {
    await this.stopIssuer();
    await this.server.stop();
    rmSync(this.#folder, { recursive: true });
  }
}
