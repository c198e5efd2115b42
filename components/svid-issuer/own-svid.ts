import type { Clock } from '#kit/clock/clock.ts';
import type { TlsMaterial, TlsSource } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { AuthorityKeeper } from './authority/keeper.ts';
import { backdateMs } from './svids/issue.ts';

const CLIENT_ID = 'svid-issuer';
const retryMs = 1_000;

interface OwnSvidOptions {
  readonly installation: string;
  readonly namespace: string;
  readonly keeper: AuthorityKeeper;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

interface OwnSvid extends TlsSource {
  stop(): void;
}

/** The issuer's own certificate: an SVID of its authority, with the DNS name of its Service. */
export async function openOwnSvid(options: OwnSvidOptions): Promise<OwnSvid> {
  const own = new RotatingSvid(options);
  await own.renew();
  return own;
}

class RotatingSvid implements OwnSvid {
  readonly #options: OwnSvidOptions;
  readonly #callbacks = new Set<() => void>();
  readonly #forget: () => void;
  #material: TlsMaterial = { key: '', cert: '', ca: '' };
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: OwnSvidOptions) {
    this.#options = options;
    this.#forget = options.keeper.onChange(() => this.#renewIn(0));
  }

  current(): TlsMaterial {
    return this.#material;
  }

  onRotate(callback: () => void): () => void {
    this.#callbacks.add(callback);
    return () => {
      this.#callbacks.delete(callback);
    };
  }

  async renew(): Promise<void> {
    const { installation, namespace, keeper, ttlMs, clock } = this.#options;
    const { signer, bundlePem } = keeper.current();
    const nowMs = clock.nowMs();
    const leaf = await signer.issue({
      uris: [serviceSpiffeId(installation, CLIENT_ID)],
      dnsNames: [CLIENT_ID, `${CLIENT_ID}.${namespace}`, `${CLIENT_ID}.${namespace}.svc`],
      commonName: CLIENT_ID,
      notBeforeMs: nowMs - backdateMs,
      notAfterMs: nowMs + ttlMs,
    });
    this.#material = { key: leaf.keyPem, cert: leaf.certificatePem, ca: bundlePem };
    for (const callback of this.#callbacks) callback();
    this.#renewIn(ttlMs / 2);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#forget();
  }

  #renewIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.renew().catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'the issuer’s own certificate cannot be renewed');
        this.#renewIn(retryMs);
      });
    }, ms);
    this.#timer.unref();
  }
}
