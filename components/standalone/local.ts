import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAppError } from '#core/errors/errors.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import { localError } from './errors.ts';
import { type ExternalParts, type Infrastructure, startInfrastructure } from './infrastructure.ts';
import { launchInProcess, launchProcesses } from './launch.ts';
import {
  baseUrlOf,
  clientIdsOf,
  isLocal,
  type Layout,
  type Ports,
  planProcesses,
  portsOf,
  type ValidatorLayout,
  validatorIds,
} from './layout.ts';
import type { Options } from './options.ts';
import { upsertValidators } from './principals.ts';
import type { LocalServices } from './starters.ts';
import { serveControl } from './state/control.ts';
import {
  chooseValidators,
  keepInstallation,
  keepSecrets,
  keepValidators,
  type StateDirectory,
  writePrivate,
} from './state/directory.ts';
import { freePorts } from './state/ports.ts';
import { type FleetEvent, type Supervision, supervise } from './supervise.ts';

const adminEmail = 'admin@chancery.local';

/** Content of `local.json`, for programs. */
interface LocalState {
  readonly gatewayUrl: string;
  readonly mtlsTokenUrl: string;
  readonly internalTokenUrl: string;
  readonly adminEmail: string;
  readonly adminPasswordFile: string;
  readonly serviceSecretsDir: string;
  readonly installation: string;
  readonly spiffeSockets: Readonly<Record<string, string>>;
  readonly validators: readonly {
    readonly validatorId: string;
    readonly grpc: string;
    readonly https: string;
    readonly ops: string;
  }[];
  /** Of several validators in processes of their own, only those that are running. */
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
}

/** A running installation on this machine. */
export interface Local {
  readonly state: LocalState;
  readonly embedded: Infrastructure['embedded'];
  /** Resolves with a line for people when an essential process has ended. */
  readonly broken: Promise<string>;
  stop(): Promise<void>;
}

interface LocalOptions {
  readonly options: Options;
  readonly directory: StateDirectory;
  readonly external: ExternalParts;
  /** The services of the installation. */
  readonly services: LocalServices;
  /** Log of the launcher itself. */
  readonly log: Logger;
  /** Creates the logger of a component that runs in this process. */
  readonly logOf: (name: string) => Logger;
  /** Called after one of several validators ended or runs again; `local.json` is already up to date. */
  readonly onChange: (event: FleetEvent) => void;
  /** Makes a link that sets a new password for an account, by its address. */
  readonly recover: (
    settings: {
      readonly databaseUrl: string;
      readonly protectionKey: Uint8Array;
      readonly baseUrl: string;
      readonly log: Logger;
    },
    address: string,
  ) => Promise<string>;
}

/** Starts with other ports, when another process bound a chosen one first. */
const startsLimit = 5;

/**
 * Starts infrastructure and components in order. When it throws, everything started is stopped again. Ports are chosen
 * before they are bound, because processes know each other's; when another process binds one in between, everything
 * starts again with other ports.
 */
export async function startLocal(local: LocalOptions): Promise<Local> {
  for (let starts = 1; ; starts += 1) {
    const cleanup = new Cleanup();
    try {
      return await startAll(local, cleanup);
    } catch (error) {
      await cleanup.run(local.log);
      if (!isPortTaken(error) || starts >= startsLimit) throw error;
      local.log.warn({ err: error, starts }, 'a chosen port was taken; starting again with other ports');
    }
  }
}

const isPortTaken = (error: unknown): boolean =>
  isAppError(error, 'unavailable') && error.code === 'PORT_TAKEN';

async function startAll(options: LocalOptions, cleanup: Cleanup): Promise<Local> {
  const { directory, external, log } = options;
  const { services } = options.services;
  const validators = chooseValidators(directory, options.options.validators);
  checkEndpoints(external, validators);
  const installation = keepInstallation(directory, 'dev-local');
  const clientIds = clientIdsOf(services, validators);
  const files = keepSecrets(directory, clientIds);
  const ports = await choosePorts(options, validatorIds(validators));
  const infrastructure = await startInfrastructure({
    directory,
    installation,
    clientIds,
    stores: services.filter((service) => isLocal(service) && service.stores === true).map(({ name }) => name),
    external,
    log,
    clock: systemClock(),
  });
  cleanup.add('infrastructure', () => infrastructure.stop());
  keepValidators(directory, validators);
  const layout: Layout = {
    installation,
    services,
    gatewayPort: ports.gateway,
    ports: ports.services,
    validators: ports.validators.map((validator, index) => ({
      ...validator,
      endpoint: external.validatorEndpoints?.[index],
    })),
    keyFilters: external.keyFilters,
    settings: external.settings,
    tenantMtlsPort: ports.tenantMtls,
    tenantInternalPort: ports.tenantInternal,
    natsUrl: infrastructure.natsUrl,
    databaseUrl: infrastructure.databases.url,
    socket: (clientId) => infrastructure.sockets[clientId] ?? '',
    adminEmail,
    messagesDir: directory.root,
    files: { ...files, serviceSecrets: directory.serviceSecrets },
  };
  return run(layout, infrastructure, options, cleanup);
}

function checkEndpoints({ validatorEndpoints }: ExternalParts, validators: number): void {
  if (validatorEndpoints === undefined || validatorEndpoints.length === validators) return;
  const message = `CHANCERY_VALIDATOR_ENDPOINTS names ${validatorEndpoints.length} addresses for ${validators} validators`;
  throw localError('INVALID_REQUEST', message);
}

/** Starts the components and writes their addresses for programs, again after each change. */
async function run(
  layout: Layout,
  infrastructure: Infrastructure,
  local: LocalOptions,
  cleanup: Cleanup,
): Promise<Local> {
  const { options, directory, log } = local;
  const write = (supervision: Supervision): LocalState => {
    const state = describe(layout, { directory, infrastructure, supervision, processes: options.processes });
    writePrivate(directory.localJson, `${JSON.stringify(state, null, 2)}\n`);
    return state;
  };
  let running: Supervision | undefined;
  const supervision = await supervise(planProcesses(layout), {
    launch: options.processes
      ? launchProcesses(layout.services, directory.logs)
      : launchInProcess(local.services, local.logOf),
    cleanup,
    afterStage: async ([first]) => {
      if (first?.service === 'tenant') await keepPrincipals(layout, log);
    },
    onChange: (event) => {
      if (running !== undefined) write(running);
      local.onChange(event);
    },
  });
  running = supervision;
  const state = write(supervision);
  cleanup.add(
    'control',
    await serveControl(directory.sockets, (line) =>
      executeCommand({ recover: local.recover, layout, supervision, log }, line),
    ),
  );
  const broken = Promise.race([
    supervision.broken,
    infrastructure.broken.then((reason) => `PostgreSQL ended: ${reason}`),
  ]);
  return { state, embedded: infrastructure.embedded, broken, stop: () => cleanup.run(log) };
}

interface Controlled {
  readonly recover: LocalOptions['recover'];
  readonly layout: Layout;
  readonly supervision: Supervision;
  readonly log: Logger;
}

/**
 * Handles `again NAME`, which restarts an ended validator and answers with its process id, and `recover EMAIL`, which
 * answers with a link that sets a new password.
 */
async function executeCommand(
  { recover, layout, supervision, log }: Controlled,
  line: string,
): Promise<string> {
  const [command, name = ''] = line.split(' ');
  if (command === 'again') return String(await supervision.again(name));
  if (command === 'recover') {
    const databaseUrl = layout.databaseUrl('tenant');
    const protectionKey = readFileSync(layout.files.protectionKey);
    return recover({ databaseUrl, protectionKey, baseUrl: baseUrlOf(layout), log }, name);
  }
  throw localError('INVALID_REQUEST', `unknown command ${command}`);
}

async function keepPrincipals(layout: Layout, log: Logger): Promise<void> {
  const telemetry = createTelemetry({ service: 'operator' });
  await upsertValidators(
    {
      operatorSocket: layout.socket('service-operator'),
      tenantGrpc: { host: '127.0.0.1', port: portsOf(layout, 'tenant').grpc },
      tenantMtls: { host: '127.0.0.1', port: layout.tenantMtlsPort },
      runtime: {
        service: 'operator',
        installation: layout.installation,
        log,
        clock: systemClock(),
        telemetry,
      },
    },
    layout.validators.map(({ validatorId }) => validatorId),
  );
}

interface ChosenPorts {
  readonly gateway: number;
  readonly tenantMtls: number;
  readonly tenantInternal: number;
  readonly services: Layout['ports'];
  readonly validators: readonly ValidatorLayout[];
}

async function choosePorts(
  { options, directory, services }: LocalOptions,
  validators: readonly string[],
): Promise<ChosenPorts> {
  const single = services.services.filter((service) => isLocal(service) && service.members !== true);
  const free = await freePorts(
    3 + (single.length + validators.length) * 3,
    options.port === 0 ? undefined : options.port,
  );
  const take = (): number => free.pop() ?? 0;
  const of = (): Ports => ({ ops: take(), https: take(), grpc: take() });
  return {
    gateway: options.port === 0 ? take() : options.port,
    tenantMtls: take(),
    tenantInternal: take(),
    services: Object.fromEntries(single.map(({ name }) => [name, of()])),
    validators: validators.map((validatorId) => ({
      validatorId,
      ports: of(),
      dataDir: join(directory.validators, validatorId),
    })),
  };
}

interface Described {
  readonly directory: StateDirectory;
  readonly infrastructure: Infrastructure;
  readonly supervision: Supervision;
  readonly processes: boolean;
}

function describe(layout: Layout, described: Described): LocalState {
  const { directory, infrastructure, supervision } = described;
  const running = supervision.running().map(({ name, pid }) => ({ name, pid }));
  const children = described.processes ? running : [];
  const at = (port: number): string => `127.0.0.1:${port}`;
  return {
    gatewayUrl: `http://${at(layout.gatewayPort)}`,
    mtlsTokenUrl: `https://${at(layout.tenantMtlsPort)}/api/internal/service-auth/token`,
    internalTokenUrl: `http://${at(layout.tenantInternalPort)}/api/internal/service-auth/token`,
    adminEmail: layout.adminEmail,
    adminPasswordFile: layout.files.adminPassword,
    serviceSecretsDir: directory.serviceSecrets,
    installation: layout.installation,
    spiffeSockets: infrastructure.sockets,
    validators: layout.validators.map(({ validatorId, ports }) => ({
      validatorId,
      grpc: at(ports.grpc),
      https: at(ports.https),
      ops: at(ports.ops),
    })),
    processes: [{ name: 'local', pid: process.pid }, ...children, ...infrastructure.processes],
  };
}
