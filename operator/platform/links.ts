import { createServiceTokens } from '#kit/auth/auth.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { Blocked } from '../controllers/shell/blocked.ts';
import type { Installation } from './installation.ts';

/** Client id of the operator in every installation. */
export const OPERATOR_CLIENT_ID = 'service-operator';

/** What a client of a service is made with. */
export interface Link {
  readonly installation: Installation;
  readonly workload: Workload;
  /** The operator's own service token. */
  readonly token: () => Promise<string>;
  /** With the name of the installation. */
  readonly runtime: Runtime;
  /**
   * Asked right before each call that changes something: who does not lead changes nothing.
   * @returns milliseconds that the call may take
   * @throws NotLeader
   */
  readonly guard: () => number;
}

export interface Links {
  /**
   * The way to the services of an installation. The same object is given while the installation is described the
   * same, so that clients can be kept by it.
   * @throws AppError unavailable while the operator has no identity; Blocked for another trust domain than its own
   */
  of(installation: Installation): Promise<Link>;
  stop(): void;
}

export interface LinksOptions {
  readonly runtime: Runtime;
  readonly guard: () => number;
  /** Opens the operator's identity; asked again after a failure. */
  readonly connect: () => Promise<Workload>;
}

/** One identity for all calls; one token an installation. */
export function createLinks(options: LinksOptions): Links {
  const { runtime, guard, connect } = options;
  const links = new WeakMap<Installation, Link>();
  let opening: Promise<Workload> | undefined;
  let isStopped = false;

  const workload = (): Promise<Workload> => {
    opening ??= connect().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  const make = (installation: Installation, identity: Workload): Link => {
    const { installation: name, endpoints } = installation;
    if (identity.trustDomain !== name) {
      const message = `The operator has an identity of ${identity.trustDomain} and none of ${name}; each installation runs its own operator`;
      throw new Blocked('DependencyNotReady', message, { state: 'stalled' });
    }
    const { clock, log } = runtime;
    const token = createServiceTokens({
      workload: identity,
      endpoint: endpoints.tenant.mtls,
      clientId: OPERATOR_CLIENT_ID,
      clock,
      log,
    });
    return {
      installation,
      workload: identity,
      token,
      guard,
      runtime: { ...runtime, installation: name },
    };
  };

  return {
    of: async (installation) => {
      const identity = await workload();
      const link = links.get(installation) ?? make(installation, identity);
      if (!isStopped) links.set(installation, link);
      return link;
    },
    stop: () => {
      isStopped = true;
      void opening?.then((identity) => identity.stop()).catch(() => undefined);
    },
  };
}
