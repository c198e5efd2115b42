import type { Logger } from '#kit/log/log.ts';
import type { PoolBounds } from '../../chain/pool/pool.ts';
import { type BuildLimits, unlimitedBuild } from '../../chain/sealing/block-interval.ts';
import { parsePatch, type Ranges, type RuntimeSettings, type SettingChanges } from './settings.ts';

/** The parts of a running validator that the settings change. */
export interface Controls {
  readonly buildLimits: BuildLimits;
  readonly bounds: Pick<PoolBounds, 'maxTransactions' | 'maxBytes'> & {
    readonly budget: { readonly maxBytes: number };
  };
  readonly verifying: { readonly workers: number; limit(threads: number): void };
  /** Undefined where no rate limit applies. */
  readonly rate: { readonly perMinute: number; limit(perMinute: number): void } | undefined;
  readonly log: Pick<Logger, 'level' | 'info'>;
}

const mebibyte = 1024 * 1024;

/**
 * The settings that may be changed at runtime. A change applies at once and is lost at the next start, which reads the
 * environment again.
 */
export class Configuration {
  readonly #controls: Controls;
  readonly #atStart: RuntimeSettings;
  #effective: RuntimeSettings;

  constructor(controls: Controls) {
    const { bounds, verifying, rate, log } = controls;
    this.#controls = controls;
    this.#atStart = {
      'build.intervalMs': null,
      'build.maxTransactions': null,
      'mempool.maxSize': bounds.maxTransactions,
      'mempool.maxBytes': bounds.maxBytes,
      'validation.concurrency': verifying.workers,
      'rateLimit.perMinute': rate?.perMinute ?? null,
      logLevel: log.level,
    };
    this.#effective = this.#atStart;
  }

  get effective(): RuntimeSettings {
    return this.#effective;
  }

  /** Throws AppError invalid, like parsePatch; nothing has changed then. */
  parse(patch: unknown): SettingChanges {
    return parsePatch(patch, this.#ranges());
  }

  apply(changes: SettingChanges): void {
    const before = this.#effective;
    const values = [...changes].map(([name, value]) => [name, value ?? this.#atStart[name]] as const);
    this.#effective = { ...before, ...Object.fromEntries(values) };
    this.#set(this.#effective);
    this.#controls.log.info(
      { settings: this.#effective },
      'the configuration was changed until the next start',
    );
  }

  #set(settings: RuntimeSettings): void {
    const { buildLimits, bounds, verifying, rate, log } = this.#controls;
    buildLimits.intervalMs = settings['build.intervalMs'] ?? unlimitedBuild.intervalMs;
    buildLimits.maxTransactions = settings['build.maxTransactions'] ?? unlimitedBuild.maxTransactions;
    bounds.maxTransactions = settings['mempool.maxSize'];
    bounds.maxBytes = settings['mempool.maxBytes'];
    verifying.limit(settings['validation.concurrency']);
    if (rate !== undefined && settings['rateLimit.perMinute'] !== null)
      rate.limit(settings['rateLimit.perMinute']);
    log.level = settings.logLevel;
  }

  #ranges(): Ranges {
    const { bounds, verifying, rate } = this.#controls;
    const min = 1;
    return {
      'build.intervalMs': { min: 0, max: 10_000 },
      'build.maxTransactions': { min, max: 10_000 },
      'mempool.maxSize': { min, max: 1_000_000 },
      'mempool.maxBytes': { min: mebibyte, max: bounds.budget.maxBytes },
      'validation.concurrency': { min, max: verifying.workers },
      'rateLimit.perMinute': { min, max: rate === undefined ? 0 : 1_000_000 },
    };
  }
}
