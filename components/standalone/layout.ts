import {
  type AddressedListener,
  addressSettingOf,
  clientIdOf,
  type Service,
  type ServiceName,
} from '#core/identity/services.ts';

/** The processes of local mode as data: which run, in which order, with which environment. Pure. */

/** One process: its name, the service it runs, the client id of its SVID and the environment it reads. */
export interface ProcessPlan {
  /** The service's name; of a validator its id. */
  readonly name: string;
  readonly service: string;
  readonly clientId: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Ports {
  readonly ops: number;
  readonly https: number;
  readonly grpc: number;
}

/** One validator: its identity, its listeners, and the directory of its log. */
export interface ValidatorLayout {
  readonly validatorId: string;
  readonly ports: Ports;
  readonly dataDir: string;
  /** The address that peers dial when it differs from the listener's, host:port. */
  readonly endpoint?: string | undefined;
}

/** Settings that services get besides the planned ones. */
export type PassedSettings = Readonly<
  Record<'tenant' | 'gateway' | 'credential', Readonly<Record<string, string>>>
>;

/** Inputs of the plan; every address is loopback. */
export interface Layout {
  readonly installation: string;
  /** The services of the installation; those that local mode runs are planned. */
  readonly services: readonly Service[];
  readonly gatewayPort: number;
  /** Ports of the services with one process, by service. */
  readonly ports: Readonly<Record<string, Ports>>;
  readonly validators: readonly ValidatorLayout[];
  /** `CHANCERY_KEY_FILTERS` of all validators; their default when absent. */
  readonly keyFilters?: string | undefined;
  /** Settings that are passed on as they are. */
  readonly settings?: PassedSettings | undefined;
  readonly tenantMtlsPort: number;
  readonly tenantInternalPort: number;
  readonly natsUrl: string;
  readonly databaseUrl: (service: string) => string;
  readonly socket: (clientId: string) => string;
  readonly adminEmail: string;
  /** Mails and text messages are written to its folders `mail` and `sms`. */
  readonly messagesDir: string;
  readonly files: {
    readonly adminPassword: string;
    readonly protectionKey: string;
    readonly keyEncryptionKey: string;
    readonly operationsKey: string;
    readonly serviceSecrets: string;
  };
}

/** Whether local mode runs a service. */
export const isLocal = ({ status, needs }: Pick<Service, 'status' | 'needs'>): boolean =>
  status === 'served' && needs === undefined;

/** `validator-0` to `validator-{count - 1}`. */
export function validatorIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `validator-${index}`);
}

/** Every client id that gets an SVID and a secret in local mode; the operator's is used to upsert principals. */
export function clientIdsOf(services: readonly Service[], validators: number): readonly string[] {
  const single = services.filter(({ members }) => members !== true);
  return [...single.map(({ name }) => clientIdOf(name)), ...validatorIds(validators)];
}

/** Browsers know passkeys for `localhost`, and not for an address. */
export function baseUrlOf({ gatewayPort }: Pick<Layout, 'gatewayPort'>): string {
  return `http://localhost:${gatewayPort}`;
}

const at = (port: number): string => `127.0.0.1:${port}`;

/** Ports of a service with one process. */
export function portsOf(layout: Pick<Layout, 'ports'>, service: string): Ports {
  const ports = layout.ports[service];
  if (ports === undefined) throw new RangeError(`${service} has no ports`);
  return ports;
}

/** Settings that a service has because of its row in the catalogue. */
function commonEnv(layout: Layout, service: Service, process: Process): Record<string, string> {
  const { clientId, ports } = process;
  return {
    CHANCERY_INSTALLATION: layout.installation,
    CHANCERY_LISTEN_HOST: '127.0.0.1',
    CHANCERY_OPS_PORT: String(ports.ops),
    CHANCERY_HTTPS_PORT: String(ports.https),
    CHANCERY_GRPC_PORT: String(ports.grpc),
    CHANCERY_RATE_LIMIT_PROFILE: 'development',
    SPIFFE_ENDPOINT_SOCKET: `unix:${layout.socket(clientId).replace(/^unix:/, '')}`,
    NATS_URL: layout.natsUrl,
    ...(service.stores === true ? { DATABASE_URL: layout.databaseUrl(service.name) } : {}),
    ...addressesOf(layout, service),
  };
}

/** Addresses of the listeners that a service calls. */
function addressesOf(layout: Layout, { name, calls }: Service): Record<string, string> {
  const called = layout.services.filter(isLocal).flatMap((callee) =>
    (calls[callee.name] ?? []).flatMap((listener) => {
      if (listener === 'peerGrpc') return [];
      // Services find validators in the directory of validators; the gateway has a list of them.
      if (callee.members === true && name !== 'gateway') return [];
      return [[addressSettingOf(callee.name, listener), addressOf(layout, callee, listener)] as const];
    }),
  );
  return Object.fromEntries(called);
}

function addressOf(layout: Layout, callee: Service, listener: AddressedListener): string {
  if (listener === 'tokens') return at(layout.tenantMtlsPort);
  if (callee.members === true) return layout.validators.map(({ ports }) => at(ports[listener])).join(',');
  return at(portsOf(layout, callee.name)[listener]);
}

/** Settings that only one service has; a service without any is not listed. */
const ownEnv: Readonly<Partial<Record<ServiceName, (layout: Layout) => Record<string, string>>>> = {
  gateway: ({ gatewayPort, settings }) => ({
    CHANCERY_GATEWAY_PORT: String(gatewayPort),
    ...settings?.gateway,
  }),
  tenant: (layout) => ({
    CHANCERY_TENANT_MTLS_PORT: String(layout.tenantMtlsPort),
    CHANCERY_TENANT_INTERNAL_PORT: String(layout.tenantInternalPort),
    CHANCERY_ADMIN_EMAIL: layout.adminEmail,
    CHANCERY_ADMIN_PASSWORD_FILE: layout.files.adminPassword,
    CHANCERY_SERVICE_SECRETS_DIR: layout.files.serviceSecrets,
    CHANCERY_PROTECTION_KEY_FILE: layout.files.protectionKey,
    CHANCERY_PUBLIC_ORG_ENABLED: 'true',
    CHANCERY_MESSAGES_DIR: layout.messagesDir,
    CHANCERY_BASE_URL: baseUrlOf(layout),
    ...layout.settings?.tenant,
  }),
  wallet: ({ files }) => ({
    CHANCERY_KEK_FILE: files.keyEncryptionKey,
    CHANCERY_WALLET_DELETION_HOURS: '0',
  }),
  blueprint: ({ files }) => ({ CHANCERY_OPERATIONS_KEY_FILE: files.operationsKey }),
  credential: (layout) => ({ Haip__IssuerUrl: baseUrlOf(layout), ...layout.settings?.credential }),
  register: ({ validators }) => ({ CHANCERY_SYSTEM_REGISTER_VALIDATORS: String(validators.length) }),
};

function validatorEnv(layout: Layout, validator: ValidatorLayout): Record<string, string> {
  const { validatorId, ports, dataDir, endpoint } = validator;
  return {
    CHANCERY_VALIDATOR_ID: validatorId,
    CHANCERY_VALIDATOR_ENDPOINT: endpoint ?? at(ports.grpc),
    CHANCERY_DATA_DIR: dataDir,
    ...(layout.keyFilters === undefined ? {} : { CHANCERY_KEY_FILTERS: layout.keyFilters }),
    // Several validators share the cores of one machine.
    ...(layout.validators.length > 1 ? { CHANCERY_VERIFY_WORKERS: '1' } : {}),
  };
}

interface Process {
  readonly clientId: string;
  readonly ports: Ports;
}

function planService(layout: Layout, service: Service): readonly ProcessPlan[] {
  const { name } = service;
  if (service.members === true) {
    return layout.validators.map((validator) => {
      const { validatorId: clientId, ports } = validator;
      const env = { ...commonEnv(layout, service, { clientId, ports }), ...validatorEnv(layout, validator) };
      return { name: clientId, service: name, clientId, env };
    });
  }
  const clientId = clientIdOf(name);
  const own = Object.entries(ownEnv).find(([known]) => known === name)?.[1](layout) ?? {};
  const env = { ...commonEnv(layout, service, { clientId, ports: portsOf(layout, name) }), ...own };
  return [{ name, service: name, clientId, env }];
}

/**
 * The processes in their start order, in stages: the services in the order of the catalogue and the gateway last, when
 * every path has an answer. Those of one stage start at the same time, because no validator waits for another one. They
 * stop in the reverse order.
 */
export function planProcesses(layout: Layout): readonly (readonly ProcessPlan[])[] {
  const local = layout.services.filter(isLocal);
  const isEntrance = ({ name }: Service) => name === 'gateway';
  const ordered = [...local.filter((service) => !isEntrance(service)), ...local.filter(isEntrance)];
  return ordered.map((service) => planService(layout, service));
}
