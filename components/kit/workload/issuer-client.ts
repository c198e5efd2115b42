import 'reflect-metadata';
import { KeyObject, webcrypto, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { Backoff } from './backoff.ts';
import type { IssuerCredentialSource, IssuerCredentials, IssuerSource, Svid } from './identity.ts';
import { askIssuer, type IssuerAnswer, IssuerRefusal } from './issuer-call.ts';
import { getPemCertificates } from './pem.ts';
import { parseSpiffeId } from './svid.ts';
import { identityMissing, judgeReceived, type SvidHolder } from './svid-holder.ts';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;
const leastPauseMs = 1_000;

interface IssuerClientOptions {
  readonly source: IssuerSource;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Requests an SVID from the installation's issuer, with a new key each time, at half of the life of the previous one.
 */
export class IssuerClient {
  readonly #options: IssuerClientOptions;
  readonly #holder: SvidHolder;
  readonly #backoff = new Backoff();
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: IssuerClientOptions, holder: SvidHolder) {
    this.#options = options;
    this.#holder = holder;
    this.#renewIn(0);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#ending.abort();
  }

  #renewIn(ms: number): void {
    if (this.#ending.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#renew(), ms);
  }

  async #renew(): Promise<void> {
    try {
      const svid = await this.#fetch();
      this.#holder.accept(svid);
      this.#backoff.reset();
      const lifeMs = svid.expiresAtMs - this.#options.clock.nowMs();
      // Up to a tenth before half life, so that members that started together do not renew together.
      this.#renewIn(Math.max(leastPauseMs, (lifeMs / 2) * (0.9 + Math.random() / 10)));
    } catch (error) {
      this.#note(error);
      const askedMs = error instanceof IssuerRefusal ? error.retryAfterMs : 0;
      this.#renewIn(Math.max(askedMs, this.#backoff.next()));
    }
  }

  #note(error: unknown): void {
    if (this.#ending.signal.aborted) return;
    const reason = error instanceof Error ? error.message : 'unknown reason';
    const isNews = reason !== this.#holder.lastProblem;
    this.#holder.lastProblem = reason;
    const expiresAtMs = this.#holder.find()?.expiresAtMs;
    const expiresAt = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
    this.#options.log[isNews ? 'warn' : 'debug']({ reason, expiresAt }, 'no new identity; trying again');
  }

  async #fetch(): Promise<Svid> {
    const { source } = this.#options;
    const { token, ca } = await credentialsOf(source);
    const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
    const request = await Pkcs10CertificateRequestGenerator.create({
      name: 'CN=workload',
      keys,
      signingAlgorithm: SIGNING_ALGORITHM,
    });
    const answer = await askIssuer({
      source,
      token,
      csr: request.toString('pem'),
      // The file may lag behind a change of authority that the issuer announced.
      ca: [ca, this.#holder.find()?.ca ?? ''].join('\n'),
      signal: this.#ending.signal,
    });
    return this.#judge(answer, KeyObject.from(keys.privateKey));
  }

  #judge(answer: IssuerAnswer, key: KeyObject): Svid {
    const { source, clock } = this.#options;
    const chain = getPemCertificates(answer.chain);
    const bundle = getPemCertificates(answer.bundle);
    const svid = judgeReceived({ id: answer.spiffeId, chain, key, bundle });
    const leaf = new X509Certificate(svid.cert);
    if (parseSpiffeId(svid.id).trustDomain !== source.installation) {
      throw identityMissing('the issuer gave an SVID of another installation');
    }
    if (!bundle.some((root) => leaf.verify(new X509Certificate(root).publicKey))) {
      throw identityMissing('the issuer gave an SVID that its own bundle does not verify');
    }
    if (svid.expiresAtMs <= clock.nowMs()) throw identityMissing('the issuer gave an expired SVID');
    return svid;
  }
}

async function credentialsOf(source: IssuerCredentialSource): Promise<IssuerCredentials> {
  if ('credentials' in source) return source.credentials();
  const [token, ca] = await Promise.all([readWhole(source.tokenFile), readWhole(source.caFile)]);
  return { token, ca };
}

async function readWhole(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
    throw identityMissing(`${path} cannot be read (${code})`, cause);
  }
}
