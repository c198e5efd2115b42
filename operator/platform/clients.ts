import type { Endpoint } from '#kit/config/config.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { Installation } from './installation.ts';
import { type Organizations, organizationsOf } from './organizations.ts';
import { type Registers, registersOf } from './registers.ts';
import type { Link, Links } from './sessions.ts';
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
   * The services of an installation; connections are kept while it is described the same.
   *
   * Errors: those of Links.of.
   */
  of(installation: Installation): Promise<Clients>;
  stop(): void;
}

/** Clients of the services on the operator's own identity. */
export function createPlatform(links: Links): Platform {
  const known = new WeakMap<Link, Clients>();
  const open = new Set<Service>();
  const connect = (link: Link): Clients => {
    const { tenant, wallet, register } = link.installation.endpoints;
    const service = (name: string, endpoint: Endpoint): Service => {
      const made = connectService({
        name: `the ${name} service`,
        ...endpoint,
        expect: serviceSpiffeId(link.installation.installation, `service-${name}`),
        identity: link.workload,
        token: link.token,
        guard: link.guard,
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
      const link = await links.of(installation);
      const clients = known.get(link) ?? connect(link);
      known.set(link, clients);
      return clients;
    },
    stop: () => {
      for (const service of open) service.close();
    },
  };
}
