import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type PollLoop, startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal } from '../errors.ts';
import type { ClusterApi, StoredObject } from '../kubernetes/cluster-api.ts';
import { type Authority, loadAuthority, makeAuthority } from './authority.ts';
import {
  activate,
  bundleOf,
  type Circumstances,
  delay,
  firstRoots,
  type NewRoot,
  parseRoots,
  planStep,
  prepare,
  type Roots,
  retire,
  signingRoot,
} from './roots.ts';

/** Key of the Secret, key of the ConfigMap, and the annotation of the Secret whose change requests a rotation. */
export const ROOTS_KEY = 'authorities.json';
export const BUNDLE_KEY = 'ca.crt';
export const ROTATE_ANNOTATION = 'chancery.dev/rotate-authority';

const rootLifeMs = 365 * 86_400_000;
const triesLimit = 8;

export interface KeeperTiming {
  /** Interval between two reads of the Secret. */
  readonly pollMs: number;
  /** An older view signs nothing, because another replica may have rotated the root. */
  readonly staleMs: number;
  readonly overlapMs: number;
  /** How long the first read may fail before the start fails. */
  readonly startMs: number;
}

interface KeeperOptions {
  readonly trustDomain: string;
  readonly secret: string;
  readonly configMap: string;
  readonly cluster: ClusterApi;
  readonly clock: Clock;
  readonly log: Logger;
  readonly timing: KeeperTiming;
}

/** The present authority. */
export interface SigningView {
  readonly signer: Authority;
  /** PEM of every trusted root, the signing one first. */
  readonly bundlePem: string;
}

/**
 * Keeps the roots of an installation in a Secret and their certificates in a ConfigMap, and rotates them. Any number of
 * replicas may run: each write is conditional on the version that was read.
 */
export class AuthorityKeeper {
  readonly #options: KeeperOptions;
  readonly #callbacks = new Set<() => void>();
  readonly #ending = new AbortController();
  #view: SigningView | undefined;
  #seenAtMs = 0;
  #loop: PollLoop | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Resolves once it has an authority, created if the Secret is empty; polls from then on. */
  async start(): Promise<void> {
    const { clock, timing, log } = this.#options;
    const endsAtMs = clock.nowMs() + timing.startMs;
    for (;;) {
      try {
        await this.poll();
        break;
      } catch (error) {
        const isFinal = isAppError(error, 'conflict') && error.code !== 'KUBERNETES_CONFLICT';
        if (isFinal || clock.nowMs() >= endsAtMs) throw error;
        log.warn({ err: error }, 'the certificate authority cannot be read yet');
        await this.#pause(Math.min(1_000, timing.pollMs));
      }
    }
    this.#loop = this.#keepPolling();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.#callbacks.clear();
    await this.#loop?.stop();
  }

  /**
   * The authority that signs now.
   *
   * Errors: unavailable/AUTHORITY_UNAVAILABLE when the Secret could not be read for too long.
   */
  current(): SigningView {
    const ageMs = this.#options.clock.nowMs() - this.#seenAtMs;
    if (this.#view === undefined || ageMs > this.#options.timing.staleMs) throw refusal('authority');
    return this.#view;
  }

  /** Calls back when the signing root or the bundle has changed. */
  onChange(callback: () => void): () => void {
    this.#callbacks.add(callback);
    return () => {
      this.#callbacks.delete(callback);
    };
  }

  /** Reads, publishes, and takes the step that is due. After a conflicting write of another replica it starts over. */
  async poll(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#pollOnce();
      } catch (error) {
        const isRace = isAppError(error, 'conflict') && error.code === 'KUBERNETES_CONFLICT';
        if (!isRace || tries === triesLimit) throw error;
      }
    }
  }

  async #pollOnce(): Promise<void> {
    const { cluster, secret: name, configMap, clock, timing } = this.#options;
    const secret = await cluster.read('secrets', name);
    const published = await cluster.read('configmaps', configMap);
    const nowMs = clock.nowMs();
    const wanted = secret.annotations[ROTATE_ANNOTATION];
    const around: Circumstances = { nowMs, overlapMs: timing.overlapMs, wanted };
    const before = this.#read(secret);
    const isPublished = before !== undefined && published.data[BUNDLE_KEY] === bundleOf(before);
    const after =
      before === undefined ? await this.#first(around) : await this.#next(before, isPublished, around);
    if (after !== before) {
      await cluster.write('secrets', secret, { [ROOTS_KEY]: JSON.stringify(after) });
      const stages = after.roots.map(({ stage }) => stage);
      this.#options.log.info({ stages }, 'the certificate authority has changed');
    }
    const bundlePem = bundleOf(after);
    if (published.data[BUNDLE_KEY] !== bundlePem) {
      await cluster.write('configmaps', published, { [BUNDLE_KEY]: bundlePem });
    }
    await this.#show(after, nowMs);
  }

  #read(secret: StoredObject): Roots | undefined {
    const text = secret.data[ROOTS_KEY];
    return text === undefined ? undefined : parseRoots(text, this.#options.trustDomain);
  }

  async #first({ nowMs, wanted }: Circumstances): Promise<Roots> {
    return firstRoots(this.#options.trustDomain, await this.#makeRoot(), nowMs, wanted);
  }

  async #next(from: Roots, isPublished: boolean, around: Circumstances): Promise<Roots> {
    switch (planStep(from, around)) {
      case 'none':
        return from;
      case 'prepare':
        return prepare(from, await this.#makeRoot(), around);
      case 'activate':
        return isPublished ? activate(from, around.nowMs) : delay(from, around.nowMs);
      case 'retire':
        return retire(from);
    }
  }

  async #makeRoot(): Promise<NewRoot> {
    const { trustDomain, clock } = this.#options;
    const made = await makeAuthority(trustDomain, clock, rootLifeMs);
    return { ...made, notAfterMs: clock.nowMs() + rootLifeMs };
  }

  async #show(roots: Roots, nowMs: number): Promise<void> {
    const bundlePem = bundleOf(roots);
    const root = signingRoot(roots);
    const isSame =
      this.#view?.bundlePem === bundlePem && this.#view.signer.certificatePem === root.certificatePem;
    this.#seenAtMs = nowMs;
    if (isSame) return;
    this.#view = { signer: await loadAuthority(root, this.#options.trustDomain), bundlePem };
    for (const callback of this.#callbacks) callback();
  }

  #keepPolling(): PollLoop {
    const { timing, log } = this.#options;
    const pass = async () => {
      await this.poll().catch((error: unknown) =>
        log.warn(
          { err: error },
          'the certificate authority cannot be read; the last view is used for a while',
        ),
      );
      return timing.pollMs;
    };
    return startPollLoop(pass, { firstMs: timing.pollMs });
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }
}
