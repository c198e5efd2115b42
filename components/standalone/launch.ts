import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AppError, AppErrorOptions } from '#core/errors/errors.ts';
import type { Service } from '#core/identity/services.ts';
import { exitCodes, isAddressInUse, STARTED_MESSAGE } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { localError } from './errors.ts';
import type { ProcessPlan } from './layout.ts';
import type { LocalServices } from './starters.ts';

/** A running component, in this process or in one of its own. */
export interface Running {
  readonly name: string;
  readonly pid: number;
  /** Resolves with a reason when it ends by itself. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

export type Launch = (plan: ProcessPlan) => Promise<Running>;

const readyDeadlineMs = 60_000;
const stopDeadlineMs = 4_000;

/**
 * Launches components in this process: the same `create` as in a pod, the same sockets, the same environment. `logOf`
 * creates the logger of each; a child logger would contain the member `service` twice.
 */
export function launchInProcess(local: LocalServices, logOf: (name: string) => Logger): Launch {
  return async ({ name, service, env }) => {
    const starter = local.starters[service];
    if (starter === undefined) throw new RangeError(`${service} has no starter`);
    const component = await startOf(name, () =>
      starter({ service, env, log: logOf(name), services: local.services }),
    );
    return {
      name,
      pid: process.pid,
      ended: new Promise(() => undefined),
      stop: () => component.stop(),
    };
  };
}

/** Starts a component. @throws AppError unavailable PORT_TAKEN when another process has bound one of its ports */
async function startOf<T>(name: string, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (cause) {
    throw isAddressInUse(cause) ? portTaken(name, { cause }) : cause;
  }
}

const portTaken = (name: string, options?: AppErrorOptions): AppError =>
  localError('PORT_TAKEN', `another process has taken a port that was chosen for ${name}`, options);

/**
 * Launches each component as a child process with its output in `logDir/NAME.log`. It is ready when it has started and
 * its probe succeeds: before it has, another process may answer at its port. Errors: unavailable/PORT_TAKEN,
 * unavailable/COMPONENT_NOT_STARTED.
 */
export function launchProcesses(services: readonly Service[], logDir: string): Launch {
  return async ({ name, service, env }) => {
    const output = openSync(join(logDir, `${name}.log`), 'a', 0o600);
    const child = spawn(process.execPath, [programOf(services, service)], {
      env: { PATH: '/usr/bin:/bin', NODE_COMPILE_CACHE: getCompileCacheDir() ?? '', ...env },
      // Ctrl-C in a terminal signals the whole process group, but the launcher decides the order of stopping.
      detached: true,
      // The channel notifies the child when this process dies, for any reason.
      stdio: ['ignore', output, output, 'ipc'],
    });
    closeSync(output);
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    try {
      await readyOrEnded(name, {
        started: startedOf(child),
        opsPort: Number(env['CHANCERY_OPS_PORT']),
        ended,
      });
    } catch (error) {
      child.kill('SIGKILL');
      throw child.exitCode === exitCodes.addressInUse ? portTaken(name, { cause: error }) : error;
    }
    return { name, pid: child.pid ?? 0, ended, stop: () => stopChild(child, ended) };
  };
}

/** Path of the program of a service. */
function programOf(services: readonly Service[], service: string): string {
  const main = services.find(({ name }) => name === service)?.main;
  if (main === undefined) throw new RangeError(`${service} has no program`);
  return fileURLToPath(new URL(`../../${main}`, import.meta.url));
}

function startedOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on('message', (message) => {
      if (message === STARTED_MESSAGE) resolve();
    });
  });
}

interface Starting {
  readonly started: Promise<void>;
  readonly opsPort: number;
  readonly ended: Promise<string>;
}

async function readyOrEnded(name: string, { started, opsPort, ended }: Starting): Promise<void> {
  const reason = await Promise.race([ended, untilReady(started, opsPort)]);
  if (reason !== 'ready') {
    throw localError('COMPONENT_NOT_STARTED', `${name} did not become ready: ${reason}`);
  }
}

async function untilReady(started: Promise<void>, opsPort: number): Promise<string> {
  const deadline = performance.now() + readyDeadlineMs;
  let hasStarted = false;
  void started.then(() => {
    hasStarted = true;
  });
  while (performance.now() < deadline) {
    const answer = await fetch(`http://127.0.0.1:${opsPort}/ready`).catch(() => undefined);
    if (hasStarted && answer?.ok === true) {
      return 'ready';
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return `not ready within ${readyDeadlineMs / 1000} s`;
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopDeadlineMs);
  await ended;
  clearTimeout(timer);
}
