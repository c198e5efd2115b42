import type { z } from 'zod';
import type { commonSettings } from '#kit/config/config.ts';
import { createOpsServer, type ReadinessCheck } from '#kit/http/http.ts';
import { Cleanup, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
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
 * Builds the `create` of a process. It opens, in this order: the declared parts, the listeners, and last the operations
 * listener with `/ready`. When it throws, everything opened is closed, as `stop` does.
 */
export function createProcess<C extends ProcessConfig, P extends ProcessParts>(
  declaration: ProcessDeclaration<C, P>,
): Create<C> {
  return async (config, runtime) => {
    const cleanup = new Cleanup();
    const base = { config, runtime, cleanup, checks: [] };
    try {
      const parts = await declaration.assemble(base);
      const addresses = await declaration.listen(base, parts);
      const ops = await openOps(base, parts);
      const { name, stopping } = declaration;
      return {
        name: typeof name === 'string' ? name : name(config),
        addresses: { ...addresses, ops },
        stop: async () => {
          await stopping?.(parts);
          await cleanup.run(runtime.log);
        },
      };
    } catch (error) {
      await cleanup.run(runtime.log);
      throw error;
    }
  };
}

async function openOps(base: ProcessBase<ProcessConfig>, { liveness }: ProcessParts): Promise<string> {
  const { config, runtime, cleanup, checks } = base;
  const ops = await createOpsServer({
    runtime,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_OPS_PORT,
    checks,
    ...(liveness === undefined ? {} : { liveness }),
  });
  cleanup.add('operations', () => ops.stop());
  return ops.address;
}

/** Opens the workload identity of the settings; resolves with the first SVID. */
export async function openIdentity(base: ProcessBase<IdentityConfig>): Promise<Workload> {
  const { log, clock } = base.runtime;
  const workload = await connectWorkload({ ...workloadOf(base.config), log, clock });
  base.cleanup.add('workload', () => workload.stop());
  return workload;
}
