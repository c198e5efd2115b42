import type { z } from 'zod';
import { type Catalogue, listServices, SERVICES, type Service } from '#core/identity/services.ts';
import type { Env } from '#kit/config/config.ts';
import { type Component, type Create, start } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { recoverByAddress } from '../tenant/sign-in/recovery/compose.ts';

/** Starts a service, or a member of one, in this process: the same `create` as in a pod, from the same environment. */
export type Starter = (process: LocalProcess) => Promise<Component>;

interface LocalProcess {
  readonly service: string;
  readonly env: Env;
  readonly log: Logger;
  /** All services of the installation, for those whose settings or data follow from the others. */
  readonly services: readonly Service[];
}

/** Names of the services of a catalogue that local mode runs. */
type LocalName<C extends Catalogue> = {
  [N in keyof C]: C[N] extends { readonly needs: string } | { readonly status: 'planned' } ? never : N;
}[keyof C] &
  string;

/** What local mode starts: the services of a catalogue, with a starter for each that it runs. */
export interface LocalServices {
  readonly services: readonly Service[];
  readonly starters: Readonly<Record<string, Starter>>;
}

/** The services of a catalogue; a row that local mode runs and that has no starter does not compile. */
export function localServicesOf<const C extends Catalogue>(
  catalogue: C,
  starters: Readonly<Record<LocalName<C>, Starter>>,
): LocalServices {
  return { services: listServices(catalogue), starters };
}

interface Startable<S extends z.ZodObject> {
  readonly schema: S;
  readonly create: Create<z.output<S>>;
}

/** The starter of a service; `load` imports its settings and its composition when it starts. */
export function starterOf<S extends z.ZodObject>(
  load: (services: readonly Service[]) => Promise<Startable<S>>,
): Starter {
  return async ({ services, ...process }) => start({ ...(await load(services)), ...process });
}

/** The starters of the services of an installation. */
export const starters: Readonly<Record<LocalName<typeof SERVICES>, Starter>> = {
  gateway: starterOf(async (services) => {
    const [config, compose] = await Promise.all([
      import('../gateway/config.ts'),
      import('../gateway/compose.ts'),
    ]);
    return { schema: config.gatewaySettingsOf(services), create: compose.createGatewayOf({ services }) };
  }),
  tenant: starterOf(async (services) => {
    const [config, compose] = await Promise.all([
      import('../tenant/config.ts'),
      import('../tenant/compose.ts'),
    ]);
    return { schema: config.tenantSettings, create: compose.createTenantOf(services) };
  }),
  wallet: starterOf(async () => {
    const [config, compose] = await Promise.all([
      import('../wallet/config.ts'),
      import('../wallet/compose.ts'),
    ]);
    return { schema: config.walletSettings, create: compose.createWallet };
  }),
  register: starterOf(async () => {
    const [config, compose] = await Promise.all([
      import('../register/config.ts'),
      import('../register/compose.ts'),
    ]);
    return { schema: config.registerSettings, create: compose.createRegister };
  }),
  validator: starterOf(async () => {
    const [config, compose] = await Promise.all([
      import('../validator/config.ts'),
      import('../validator/compose.ts'),
    ]);
    return { schema: config.validatorSettings, create: compose.createValidator };
  }),
  blueprint: starterOf(async () => {
    const [config, compose] = await Promise.all([
      import('../blueprint/config.ts'),
      import('../blueprint/compose.ts'),
    ]);
    return { schema: config.blueprintSettings, create: compose.createBlueprint };
  }),
  credential: starterOf(async () => {
    const [config, compose] = await Promise.all([
      import('../credential/config.ts'),
      import('../credential/compose.ts'),
    ]);
    return { schema: config.credentialSettings, create: compose.createCredential };
  }),
};

/** The services of an installation. */
export const installedServices: LocalServices = localServicesOf(SERVICES, starters);

/** Makes a link that sets a new password for an account, by its address. */
export const recoverAccount = recoverByAddress;
