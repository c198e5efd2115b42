import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import type { commonSettings } from '#kit/config/config.ts';
import { createOpsServer, type OpsServer, type ReadinessCheck } from '#kit/http/http.ts';
import { Cleanup, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { connectWorkload, type IdentityConfig, type Workload, workloadOf } from '#kit/workload/workload.ts';

/** Settings that every process has. */
type ProcessConfig = Pick<
  z.output<z.ZodObject<typeof commonSettings>>,
  'CHANCERY_LISTEN_HOST' | 'CHANCERY_OPS_PORT'
>;

/** What is open before a process is assembled. */
export interface ProcessBase<C> {
  readonly config: C;
  readonly runtime: Runtime;
  /** Closes what the process opens, last opened first. */
  readonly cleanup: Cleanup;
  /** Checks that must pass for the process to be ready; opening a part adds its check. */
  readonly checks: ReadinessCheck[];
  /** The dependency that the start waits for. */
  readonly start: StartState;
}

/** Parts of every process. */
export interface ProcessParts {
  /** Checks whose failure only a restart repairs: `/alive` fails while one of them does. */
  readonly liveness?: readonly ReadinessCheck[];
}

/** Declaration of a process; `createProcess` opens it. A service of the catalogue uses `createService`. */
interface ProcessDeclaration<C extends ProcessConfig, P extends ProcessParts> {
  readonly name: string | ((config: C) => string);
  /** Builds the parts. */
  readonly assemble: (base: ProcessBase<C>) => Promise<P>;
  /** Opens the listeners; returns their addresses by name. */
  readonly listen: (base: ProcessBase<C>, parts: P) => Promise<Readonly<Record<string, string>>>;
  /** Runs before its listeners close. */
  readonly stopping?: (parts: P) => Promise<void>;
}

/**
 * Builds the `create` of a process. It opens, in this order: the operations listener, the declared parts, the other
 * listeners. `/ready` is 503 and `/alive` 200 until all of them are open, so that a process whose dependency is away
 * waits for it and is not restarted. When it throws, everything opened is closed, as `stop` does.
 */
export function createProcess<C extends ProcessConfig, P extends ProcessParts>(
  declaration: ProcessDeclaration<C, P>,
): Create<C> {
  return async (config, runtime) => {
    const cleanup = new Cleanup();
    const start = new StartState(runtime.log);
    const checks: ReadinessCheck[] = [start.check];
    const liveness: ReadinessCheck[] = [];
    const base = { config, runtime, cleanup, checks, start };
    const ops = await openOps(base, liveness);
    try {
      const parts = await declaration.assemble(base);
      liveness.push(...(parts.liveness ?? []));
      const addresses = await declaration.listen(base, parts);
      checks.splice(checks.indexOf(start.check), 1);
      cleanup.add('operations', () => ops.stop());
      const { name, stopping } = declaration;
      return {
        name: typeof name === 'string' ? name : name(config),
        addresses: { ...addresses, ops: ops.address },
        stop: async () => {
          await stopping?.(parts);
          await cleanup.run(runtime.log);
        },
      };
    } catch (error) {
      await ops.stop();
      await cleanup.run(runtime.log);
      throw error;
    }
  };
}

function openOps(base: ProcessBase<ProcessConfig>, liveness: readonly ReadinessCheck[]): Promise<OpsServer> {
  const { config, runtime, checks } = base;
  return createOpsServer({
    runtime,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_OPS_PORT,
    checks,
    liveness,
  });
}

const retryMs = 1_000;
const partsToOpen = 'its parts to open';

/** Until a process has started, its readiness check `start` fails and names the dependency that it waits for. */
class StartState {
  readonly #log: Logger;
  #waitsFor: string = partsToOpen;

  constructor(log: Logger) {
    this.#log = log;
  }

  readonly check: ReadinessCheck = {
    name: 'start',
    check: () => {
      throw new Error(`the process is starting and waits for ${this.#waitsFor}`);
    },
  };

  /**
   * Repeats an attempt until the dependency answers, every second. Each reason is logged once. Errors of other kinds
   * than `unavailable` and `timeout` are thrown: waiting does not repair them.
   */
  async untilAvailable<T>(dependency: string, attempt: () => Promise<T>): Promise<T> {
    this.#waitsFor = dependency;
    for (let logged = ''; ; ) {
      try {
        const result = await attempt();
        this.#waitsFor = partsToOpen;
        if (logged !== '') this.#log.info({ dependency }, 'the start continues');
        return result;
      } catch (error) {
        if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) throw error;
        this.#waitsFor = `${dependency}: ${error.message}`;
        if (error.message !== logged)
          this.#log.warn({ err: error, dependency }, 'the start waits for a dependency');
        logged = error.message;
        await sleep(retryMs);
      }
    }
  }
}

/** Opens the workload identity of the settings; resolves with the first SVID, however late it comes. */
export async function openIdentity(base: ProcessBase<IdentityConfig>): Promise<Workload> {
  const { log, clock } = base.runtime;
  const source = workloadOf(base.config);
  const workload = await base.start.untilAvailable('the source of identities', () =>
    connectWorkload({ ...source, log, clock }),
  );
  base.cleanup.add('workload', () => workload.stop());
  return workload;
}
