import { join } from 'node:path';
import { systemClock } from '#kit/clock/clock.ts';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import { type Given, type Infrastructure, startInfrastructure } from './infrastructure.ts';
import { launchInProcess, launchProcesses, type Running } from './launch.ts';
import {
  clientIds,
  type Ports,
  planProcesses,
  type ServiceName,
  type Surroundings,
  validatorId,
} from './layout.ts';
import type { Options } from './options.ts';
import { upsertValidators } from './principals.ts';
import { keepInstallation, keepSecrets, type StateDirectory, writePrivate } from './state/directory.ts';
import { freePorts } from './state/ports.ts';

const services: readonly ServiceName[] = ['tenant', 'wallet', 'register', 'validator', 'gateway'];
const adminEmail = 'admin@chancery.local';

/** What `local.json` tells programs. */
export interface LocalState {
  readonly gatewayUrl: string;
  readonly mtlsTokenUrl: string;
  readonly internalTokenUrl: string;
  readonly adminEmail: string;
  readonly adminPasswordFile: string;
  readonly serviceSecretsDir: string;
  readonly installation: string;
  readonly spiffeSockets: Readonly<Record<string, string>>;
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
}

/** A running installation on this machine. */
export interface Local {
  readonly state: LocalState;
  readonly embedded: Infrastructure['embedded'];
  /** Resolves with a line for people when something ended that should run. */
  readonly broken: Promise<string>;
  stop(): Promise<void>;
}

export interface LocalOptions {
  readonly options: Options;
  readonly directory: StateDirectory;
  readonly given: Given;
  readonly log: Logger;
}

/** Starts infrastructure and components in their order; on a throw everything started is stopped again. */
export async function startLocal(local: LocalOptions): Promise<Local> {
  const cleanup = new Cleanup();
  try {
    return await startAll(local, cleanup);
  } catch (error) {
    await cleanup.run(local.log);
    throw error;
  }
}

async function startAll({ options, directory, given, log }: LocalOptions, cleanup: Cleanup): Promise<Local> {
  const installation = keepInstallation(directory, 'dev-local');
  const files = keepSecrets(directory, clientIds);
  const ports = await choosePorts(options.port);
  const infrastructure = await startInfrastructure({
    directory,
    installation,
    natsPort: ports.nats,
    given,
    log,
    clock: systemClock(),
  });
  cleanup.add('infrastructure', () => infrastructure.stop());
  const around: Surroundings = {
    installation,
    gatewayPort: ports.gateway,
    ports: ports.services,
    tenantMtlsPort: ports.tenantMtls,
    tenantInternalPort: ports.tenantInternal,
    natsUrl: infrastructure.natsUrl,
    databaseUrl: infrastructure.databases.url,
    socket: (clientId) => infrastructure.sockets[clientId] ?? '',
    adminEmail,
    files: {
      ...files,
      serviceSecrets: directory.serviceSecrets,
      validatorData: join(directory.validators, validatorId),
    },
  };
  const running = await startComponents(around, { options, directory, log, cleanup });
  const state = describe(around, { directory, infrastructure, running, processes: options.processes });
  writePrivate(directory.localJson, `${JSON.stringify(state, null, 2)}\n`);
  const ends = running.map((one) => one.ended.then((reason) => `${one.service} ended: ${reason}`));
  const broken = Promise.race([
    ...ends,
    infrastructure.broken.then((reason) => `PostgreSQL ended: ${reason}`),
  ]);
  return { state, embedded: infrastructure.embedded, broken, stop: () => cleanup.run(log) };
}

interface Around {
  readonly options: Options;
  readonly directory: StateDirectory;
  readonly log: Logger;
  readonly cleanup: Cleanup;
}

async function startComponents(surroundings: Surroundings, around: Around): Promise<readonly Running[]> {
  const { options, directory, log, cleanup } = around;
  const launch = options.processes ? launchProcesses(directory.logs) : launchInProcess(log);
  const running: Running[] = [];
  for (const plan of planProcesses(surroundings)) {
    const one = await launch(plan);
    cleanup.add(plan.service, () => one.stop());
    running.push(one);
    if (plan.service === 'tenant') {
      await keepPrincipals(surroundings, log);
    }
  }
  return running;
}

async function keepPrincipals(around: Surroundings, log: Logger): Promise<void> {
  const telemetry = createTelemetry({ service: 'operator' });
  await upsertValidators(
    {
      operatorSocket: around.socket('service-operator'),
      tenantGrpc: { host: '127.0.0.1', port: around.ports.tenant.grpc },
      tenantMtls: { host: '127.0.0.1', port: around.tenantMtlsPort },
      runtime: {
        service: 'operator',
        installation: around.installation,
        log,
        clock: systemClock(),
        telemetry,
      },
    },
    [validatorId],
  );
}

interface ChosenPorts {
  readonly gateway: number;
  readonly nats: number;
  readonly tenantMtls: number;
  readonly tenantInternal: number;
  readonly services: Readonly<Record<ServiceName, Ports>>;
}

async function choosePorts(gatewayPort: number): Promise<ChosenPorts> {
  const free = await freePorts(4 + services.length * 3);
  const take = (): number => free.pop() ?? 0;
  const of = (): Ports => ({ ops: take(), https: take(), grpc: take() });
  return {
    gateway: gatewayPort === 0 ? take() : gatewayPort,
    nats: take(),
    tenantMtls: take(),
    tenantInternal: take(),
    services: { tenant: of(), wallet: of(), register: of(), validator: of(), gateway: of() },
  };
}

interface Described {
  readonly directory: StateDirectory;
  readonly infrastructure: Infrastructure;
  readonly running: readonly Running[];
  readonly processes: boolean;
}

function describe(around: Surroundings, described: Described): LocalState {
  const { directory, infrastructure, running } = described;
  const children = described.processes ? running.map(({ service, pid }) => ({ name: service, pid })) : [];
  return {
    gatewayUrl: `http://127.0.0.1:${around.gatewayPort}`,
    mtlsTokenUrl: `https://127.0.0.1:${around.tenantMtlsPort}/api/internal/service-auth/token`,
    internalTokenUrl: `http://127.0.0.1:${around.tenantInternalPort}/api/internal/service-auth/token`,
    adminEmail: around.adminEmail,
    adminPasswordFile: around.files.adminPassword,
    serviceSecretsDir: directory.serviceSecrets,
    installation: around.installation,
    spiffeSockets: infrastructure.sockets,
    processes: [{ name: 'local', pid: process.pid }, ...children, ...infrastructure.processes],
  };
}
