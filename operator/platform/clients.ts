import type { Endpoint } from '#kit/config/config.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { Installation } from '../api/installation.ts';
import { type Organizations, organizationsOf } from './organizations.ts';
import { type Registers, registersOf } from './registers.ts';
import type { ServiceSession, ServiceSessions } from './sessions.ts';
import { connectService, type Service } from './transport.ts';
import { type Wallets, walletsOf } from './wallets.ts';

/** The services of one installation. */
export interface Clients {
  readonly organizations: Organizations;
  readonly registers: Registers;
  readonly wallets: Wallets;
}

export interface Platform {
  /**
   * The services of an installation; connections are kept while its description is unchanged.
   *
   * Errors: those of ServiceSessions.of.
   */
  of(installation: Installation): Promise<Clients>;
  stop(): void;
}

/** Creates clients of the services with the operator's identity. */
export function createPlatform(sessions: ServiceSessions): Platform {
  const known = new WeakMap<ServiceSession, Clients>();
  const open = new Set<Service>();
  const connect = (session: ServiceSession): Clients => {
    const { tenant, wallet, register } = session.installation.endpoints;
    const service = (name: string, endpoint: Endpoint): Service => {
      const made = connectService({
        name: `the ${name} service`,
        ...endpoint,
        expect: serviceSpiffeId(session.installation.installation, `service-${name}`),
        identity: session.workload,
        token: session.token,
        guard: session.guard,
      });
      open.add(made);
      return made;
    };
    return {
      organizations: organizationsOf(service('tenant', tenant.https)),
      registers: registersOf(service('register', register.https)),
      wallets: walletsOf(service('wallet', wallet.https)),
    };
  };
  return {
    of: async (installation) => {
      const session = await sessions.of(installation);
      const clients = known.get(session) ?? connect(session);
      known.set(session, clients);
      return clients;
    },
    stop: () => {
      for (const service of open) service.close();
    },
  };
}
