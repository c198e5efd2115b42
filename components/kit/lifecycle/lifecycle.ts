import { argv, env } from 'node:process';
import type { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import { type Clock, systemClock } from '#kit/clock/clock.ts';
import {
  ConfigError,
  commonSettings,
  type Env,
  loadConfig,
  loadPart,
  migrationSettings,
} from '#kit/config/config.ts';
import { createLogger, type Logger } from '#kit/log/log.ts';
import { createTelemetry, type Telemetry } from '#kit/telemetry/telemetry.ts';
import { startTracing } from '#kit/telemetry/tracing.ts';

/** What the kit gives to a component: its name and its plumbing. */
export interface Runtime {
  readonly service: string;
  readonly installation: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** In tests: an HTTP answer that its route does not declare fails. */
  readonly judgesAnswers?: true;
}

/** A running component. Addresses are `host:port` of what it listens on. */
export interface Component {
  readonly name: string;
  readonly addresses: {
    readonly ops?: string;
    readonly https?: string;
    readonly grpc?: string;
    readonly [listener: string]: string | undefined;
  };
  /** Stops listening, finishes requests in flight, closes what it opened. Calling it again gives the same promise. */
  stop(): Promise<void>;
}

/** Builds a component; resolves when it listens and is ready. When it throws, nothing stays open. */
export type Create<C> = (config: C, runtime: Runtime) => Promise<Component>;

/** Brings the schema of a component up to date; resolves with the names of the migrations that it applied. */
export type Migrate = (where: { readonly url: string; readonly log: Logger }) => Promise<readonly string[]>;

/**
 * One act of an operator, in a process of its own. @returns the text to print; undefined when arguments are missing, which
 * exits with 64. An AppError is printed without its stack.
 */
type Command = (
  words: readonly string[],
  context: { readonly env: Env; readonly log: Logger },
) => Promise<string | undefined>;

/** Declaration of a component for `run` and `start`. */
interface Definition<S extends z.ZodObject> {
  readonly service: string;
  readonly schema: S;
  readonly create: Create<z.output<S>>;
  /** Only of a component with a database. */
  readonly migrate?: Migrate;
  /** Acts of an operator by their argument, such as `node main.js recover ADDRESS`. */
  readonly commands?: Readonly<Record<string, Command>>;
}

interface StartOptions<S extends z.ZodObject> extends Definition<S> {
  readonly env: Env;
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Memory, CPU and event loop of the process in this component's metrics. */
  readonly processMetrics?: boolean;
}

/**
 * Starts a component inside this process with settings from a record, as local mode and tests do.
 *
 * @throws ConfigError before anything opens, or what `create` throws.
 */
export async function start<S extends z.ZodObject>(options: StartOptions<S>): Promise<Component> {
  const config = loadConfig(options.schema, options.env);
  const level = commonSettings.CHANCERY_LOG_LEVEL.parse(options.env['CHANCERY_LOG_LEVEL'] || undefined);
  const log = options.log ?? createLogger({ service: options.service, level });
  const telemetry = createTelemetry({
    service: options.service,
    processMetrics: options.processMetrics ?? false,
  });
  const startedAt = performance.now();
  const component = await options.create(config, {
    service: options.service,
    installation: options.env['CHANCERY_INSTALLATION'] ?? '',
    log,
    clock: options.clock ?? systemClock(),
    telemetry,
  });
  log.info({ durationMs: Math.round(performance.now() - startedAt), ...component.addresses }, 'started');
  return stopOnce(component, () => telemetry.shutdown());
}

function stopOnce(component: Component, after: () => void): Component {
  let stopped: Promise<void> | undefined;
  return {
    name: component.name,
    addresses: component.addresses,
    stop: () => {
      stopped ??= component.stop().finally(after);
      return stopped;
    },
  };
}

/** Exit codes of `run`: sysexits EX_USAGE, EX_UNAVAILABLE and EX_CONFIG, and 1 for every other failure. */
export const exitCodes = { usage: 64, addressInUse: 69, configuration: 78, failure: 1 } as const;

/** What `run` sends over the channel of a process that was forked with one, when its component has started. */
export const STARTED_MESSAGE = 'started';

/** Whether an error, or a cause of it, is that an address to listen on is in use; grpc-js says so in its text alone. */
export function isAddressInUse(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each.message.includes('EADDRINUSE')) return true;
  }
  return false;
}

/** Time that a start may still take after a signal, because a dependency that it waits for may never come. */
const startGraceMs = 4_000;

/** Time that a stop may take before the process exits without it. */
const stopDeadlineMs = 25_000;

/**
 * Entry of a `main.ts`: reads the environment, starts the component, stops it in order on SIGTERM and SIGINT. The
 * process exits with 0 after a clean stop, 78 on invalid configuration, 69 when an address to listen on is in use, 1
 * otherwise; a second signal exits at once.
 * With the argument `migrate` a component with a database brings its schema up to date and exits: a job before an
 * upgrade. Arguments that name a command of the component run it. Other arguments exit with 64.
 */
export async function run<S extends z.ZodObject>(definition: Definition<S>): Promise<void> {
  const log = createLogger({ service: definition.service, level: 'info' });
  process.once('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught');
    process.exit(exitCodes.failure);
  });
  const [act, ...words] = argv.slice(2);
  const { migrate } = definition;
  if (act === undefined) return serve(definition, log);
  if (act === 'migrate' && migrate !== undefined) return migrateOnly({ ...definition, migrate }, log);
  const command = definition.commands?.[act];
  if (command !== undefined) return execute(definition.service, log, () => command(words, { env, log }));
  process.stderr.write(`${definition.service}: unknown argument ${act}\n`);
  finish(exitCodes.usage);
}

async function migrateOnly<S extends z.ZodObject>(
  definition: Definition<S> & { readonly migrate: Migrate },
  log: Logger,
): Promise<void> {
  // Nothing to close: an unfinished migration is rolled back.
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(exitCodes.failure));
  try {
    const { DATABASE_URL: url } = loadPart(migrationSettings, definition.schema, env);
    const applied = await definition.migrate({ url, log });
    log.info({ applied }, 'migrated');
    finish(0);
  } catch (error) {
    report(definition.service, log, error);
  }
}

async function execute(
  service: string,
  log: Logger,
  command: () => Promise<string | undefined>,
): Promise<void> {
  try {
    const text = await command();
    if (text === undefined) {
      process.stderr.write(`${service}: an argument is missing\n`);
      finish(exitCodes.usage);
      return;
    }
    process.stdout.write(`${text}\n`);
    finish(0);
  } catch (error) {
    if (!isAppError(error) || error.kind === 'internal') return report(service, log, error);
    process.stderr.write(`${service}: ${error.message}\n`);
    finish(exitCodes.failure);
  }
}

async function serve<S extends z.ZodObject>(definition: Definition<S>, log: Logger): Promise<void> {
  // From the first moment: a signal during the start stops the component once it has started, or abandons the start.
  const stopRequested = untilSignal(log);
  try {
    const stopTracing = await startTracing(env, definition.service);
    const component = await unlessStopped(stopRequested, start({ ...definition, env, processMetrics: true }));
    process.send?.(STARTED_MESSAGE);
    await stopRequested;
    const ended = await within(stopDeadlineMs, log, () => component.stop());
    await within(2_000, log, stopTracing);
    finish(ended ? 0 : exitCodes.failure);
  } catch (error) {
    report(definition.service, log, error);
  }
}

/** Logs why the process cannot run, and exits. */
function report(service: string, log: Logger, error: unknown): void {
  if (error instanceof ConfigError) {
    process.stderr.write(`${service}: ${error.message}\n`);
    finish(exitCodes.configuration);
  } else {
    log.fatal({ err: error }, 'cannot run');
    finish(isAddressInUse(error) ? exitCodes.addressInUse : exitCodes.failure);
  }
}

function finish(code: number): void {
  process.exitCode = code;
  // Listening for the parent's end keeps the channel open, and with it the process.
  process.channel?.unref();
  // Whatever still holds the event loop after an orderly stop must not keep the process alive.
  setTimeout(() => process.exit(code), 1_000).unref();
}

/** The result of `starting`; rejects when a signal came and the start does not end within the grace period. */
function unlessStopped<T>(stopRequested: Promise<void>, starting: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  void stopRequested.then(() => {
    const giveUp = () => late.reject(new Error('stopped by a signal before the start was complete'));
    setTimeout(giveUp, startGraceMs).unref();
  });
  return Promise.race([starting, late.promise]);
}

function untilSignal(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    let stopRequested = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (stopRequested) {
        process.exit(exitCodes.failure);
      }
      stopRequested = true;
      log.info({ signal }, 'stopping');
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    // A process that was forked with a channel ends with its parent, however the parent ended.
    process.once('disconnect', () => onSignal('SIGTERM'));
    // The parent may have ended while the modules were loaded; without a channel `connected` is undefined.
    if (process.connected === false) onSignal('SIGTERM');
  });
}

/** Whether `act` succeeded within its time; a failure is logged. */
async function within(deadlineMs: number, log: Logger, act: () => Promise<void>): Promise<boolean> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not done within ${deadlineMs} ms`)), deadlineMs);
  try {
    await Promise.race([act(), late.promise]);
    return true;
  } catch (error) {
    log.error({ err: error }, 'stopping failed');
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Functions that close what was opened, called in reverse order. Also used when a component fails while it is built.
 */
export class Cleanup {
  readonly #steps: { readonly name: string; readonly act: () => void | Promise<void> }[] = [];
  #running: Promise<void> | undefined;

  /** Registers the function that closes `name`. */
  add(name: string, act: () => void | Promise<void>): void {
    this.#steps.push({ name, act });
  }

  /** Closes everything once, last opened first. A failing step is logged and does not stop the others. */
  run(log: Logger): Promise<void> {
    this.#running ??= this.#runSteps(log);
    return this.#running;
  }

  async #runSteps(log: Logger): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.act();
      } catch (error) {
        log.error({ err: error, step: step.name }, 'closing failed');
      }
    }
  }
}
