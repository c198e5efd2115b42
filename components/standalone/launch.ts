import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { ProcessPlan, ServiceName } from './layout.ts';

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
export function launchInProcess(logOf: (name: string) => Logger): Launch {
  return async ({ name, service, env }) => {
    const begin = starters[service];
    const component = await begin(env, logOf(name));
    return {
      name,
      pid: process.pid,
      ended: new Promise(() => undefined),
      stop: () => component.stop(),
    };
  };
}

interface Stoppable {
  stop(): Promise<void>;
}

type Starter = (env: Readonly<Record<string, string>>, log: Logger) => Promise<Stoppable>;

const starters: Readonly<Record<ServiceName, Starter>> = {
  tenant: async (env, log) => {
    const [{ start }, { tenantSettings }, { createTenant }] = await Promise.all([
      import('#kit/lifecycle/lifecycle.ts'),
      import('../tenant/config.ts'),
      import('../tenant/compose.ts'),
    ]);
    return start({ service: 'tenant', schema: tenantSettings, create: createTenant, env, log });
  },
  wallet: async (env, log) => {
    const [{ start }, { walletSettings }, { createWallet }] = await Promise.all([
      import('#kit/lifecycle/lifecycle.ts'),
      import('../wallet/config.ts'),
      import('../wallet/compose.ts'),
    ]);
    return start({ service: 'wallet', schema: walletSettings, create: createWallet, env, log });
  },
  register: async (env, log) => {
    const [{ start }, { registerSettings }, { createRegister }] = await Promise.all([
      import('#kit/lifecycle/lifecycle.ts'),
      import('../register/config.ts'),
      import('../register/compose.ts'),
    ]);
    return start({ service: 'register', schema: registerSettings, create: createRegister, env, log });
  },
  validator: async (env, log) => {
    const [{ start }, { validatorSettings }, { createValidator }] = await Promise.all([
      import('#kit/lifecycle/lifecycle.ts'),
      import('../validator/config.ts'),
      import('../validator/compose.ts'),
    ]);
    return start({ service: 'validator', schema: validatorSettings, create: createValidator, env, log });
  },
  gateway: async (env, log) => {
    const [{ start }, { gatewaySettings }, { createGateway }] = await Promise.all([
      import('#kit/lifecycle/lifecycle.ts'),
      import('../gateway/config.ts'),
      import('../gateway/compose.ts'),
    ]);
    return start({ service: 'gateway', schema: gatewaySettings, create: createGateway, env, log });
  },
};

/**
 * Launches each component as a child process with its output in `logDir/NAME.log`. It is ready when its probe succeeds.
 */
export function launchProcesses(logDir: string): Launch {
  return async ({ name, service, env }) => {
    const output = openSync(join(logDir, `${name}.log`), 'a', 0o600);
    const main = new URL(`../${service}/main.ts`, import.meta.url);
    const child = spawn(process.execPath, [main.pathname], {
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
      await readyOrEnded(name, Number(env['CHANCERY_OPS_PORT']), ended);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
    return { name, pid: child.pid ?? 0, ended, stop: () => stopChild(child, ended) };
  };
}

async function readyOrEnded(name: string, opsPort: number, ended: Promise<string>): Promise<void> {
  const reason = await Promise.race([ended, untilReady(opsPort)]);
  if (reason !== 'ready') {
    throw new AppError('unavailable', 'COMPONENT_NOT_STARTED', `${name} did not become ready: ${reason}`);
  }
}

async function untilReady(opsPort: number): Promise<string> {
  const deadline = performance.now() + readyDeadlineMs;
  while (performance.now() < deadline) {
    const answer = await fetch(`http://127.0.0.1:${opsPort}/ready`).catch(() => undefined);
    if (answer?.ok === true) {
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
