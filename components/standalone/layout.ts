import { clientIdOf, listServices } from '#core/identity/services.ts';

/** The processes of local mode as data: which run, in which order, with which environment. Pure. */

/** A service that local mode runs. */
export type ServiceName = 'tenant' | 'wallet' | 'register' | 'validator' | 'gateway';

/** Services with one process. */
export type SingleName = Exclude<ServiceName, 'validator'>;

/** One process: its name, the component it runs, the client id of its SVID and the environment it reads. */
export interface ProcessPlan {
  /** The service's name; of a validator its id. */
  readonly name: string;
  readonly service: ServiceName;
  readonly clientId: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Ports {
  readonly ops: number;
  readonly https: number;
  readonly grpc: number;
}

/** One validator: its identity, its listeners, and the directory of its log. */
export interface ValidatorPlace {
  readonly validatorId: string;
  readonly ports: Ports;
  readonly dataDir: string;
  /** The address that peers dial when it differs from the listener's, host:port. */
  readonly endpoint?: string | undefined;
}

/** Inputs of the plan; every address is loopback. */
export interface Surroundings {
  readonly installation: string;
  readonly gatewayPort: number;
  readonly ports: Readonly<Record<SingleName, Ports>>;
  readonly validators: readonly ValidatorPlace[];
  readonly tenantMtlsPort: number;
  readonly tenantInternalPort: number;
  readonly natsUrl: string;
  readonly databaseUrl: (service: ServiceName) => string;
  readonly socket: (clientId: string) => string;
  readonly adminEmail: string;
  readonly files: {
    readonly adminPassword: string;
    readonly protectionKey: string;
    readonly keyEncryptionKey: string;
    readonly serviceSecrets: string;
  };
}

/** `validator-0` to `validator-{count - 1}`. */
export function validatorIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `validator-${index}`);
}

/** Every client id that gets an SVID and a secret in local mode; the operator's is used to upsert principals. */
export function clientIdsOf(validators: number): readonly string[] {
  const single = listServices().filter(({ members }) => members !== true);
  return [...single.map(({ name }) => clientIdOf(name)), ...validatorIds(validators)];
}

const at = (port: number): string => `127.0.0.1:${port}`;

function base(around: Surroundings, { ops, https }: Ports, clientId: string): Record<string, string> {
  return {
    CHANCERY_INSTALLATION: around.installation,
    CHANCERY_LISTEN_HOST: '127.0.0.1',
    CHANCERY_OPS_PORT: String(ops),
    CHANCERY_HTTPS_PORT: String(https),
    CHANCERY_RATE_LIMIT_PROFILE: 'development',
    SPIFFE_ENDPOINT_SOCKET: `unix:${around.socket(clientId).replace(/^unix:/, '')}`,
    NATS_URL: around.natsUrl,
  };
}

function tenantAddresses(around: Surroundings): Record<string, string> {
  const { https, grpc } = around.ports.tenant;
  return {
    CHANCERY_TENANT_HTTPS: at(https),
    CHANCERY_TENANT_GRPC: at(grpc),
    CHANCERY_TENANT_MTLS: at(around.tenantMtlsPort),
  };
}

const grpcPort = ({ grpc }: Ports): Record<string, string> => ({ CHANCERY_GRPC_PORT: String(grpc) });

function tenant(around: Surroundings): ProcessPlan {
  const clientId = clientIdOf('tenant');
  return {
    name: 'tenant',
    service: 'tenant',
    clientId,
    env: {
      ...base(around, around.ports.tenant, clientId),
      ...grpcPort(around.ports.tenant),
      DATABASE_URL: around.databaseUrl('tenant'),
      CHANCERY_TENANT_MTLS_PORT: String(around.tenantMtlsPort),
      CHANCERY_TENANT_INTERNAL_PORT: String(around.tenantInternalPort),
      CHANCERY_WALLET_GRPC: at(around.ports.wallet.grpc),
      CHANCERY_ADMIN_EMAIL: around.adminEmail,
      CHANCERY_ADMIN_PASSWORD_FILE: around.files.adminPassword,
      CHANCERY_SERVICE_SECRETS_DIR: around.files.serviceSecrets,
      CHANCERY_PROTECTION_KEY_FILE: around.files.protectionKey,
      CHANCERY_PUBLIC_ORG_ENABLED: 'true',
      CHANCERY_BASE_URL: `http://${at(around.gatewayPort)}`,
    },
  };
}

function wallet(around: Surroundings): ProcessPlan {
  const clientId = clientIdOf('wallet');
  return {
    name: 'wallet',
    service: 'wallet',
    clientId,
    env: {
      ...base(around, around.ports.wallet, clientId),
      ...grpcPort(around.ports.wallet),
      ...tenantAddresses(around),
      DATABASE_URL: around.databaseUrl('wallet'),
      CHANCERY_KEK_FILE: around.files.keyEncryptionKey,
    },
  };
}

function register(around: Surroundings): ProcessPlan {
  const clientId = clientIdOf('register');
  return {
    name: 'register',
    service: 'register',
    clientId,
    env: {
      ...base(around, around.ports.register, clientId),
      ...grpcPort(around.ports.register),
      ...tenantAddresses(around),
      DATABASE_URL: around.databaseUrl('register'),
      CHANCERY_WALLET_GRPC: at(around.ports.wallet.grpc),
      CHANCERY_SYSTEM_REGISTER_VALIDATORS: String(around.validators.length),
    },
  };
}

function validator(around: Surroundings, place: ValidatorPlace): ProcessPlan {
  const { validatorId, ports, dataDir, endpoint } = place;
  return {
    name: validatorId,
    service: 'validator',
    clientId: validatorId,
    env: {
      ...base(around, ports, validatorId),
      ...grpcPort(ports),
      ...tenantAddresses(around),
      CHANCERY_VALIDATOR_ID: validatorId,
      CHANCERY_VALIDATOR_ENDPOINT: endpoint ?? at(ports.grpc),
      CHANCERY_DATA_DIR: dataDir,
      CHANCERY_WALLET_GRPC: at(around.ports.wallet.grpc),
      CHANCERY_REGISTER_GRPC: at(around.ports.register.grpc),
      // Several validators share the cores of one machine.
      ...(around.validators.length > 1 ? { CHANCERY_VERIFY_WORKERS: '1' } : {}),
    },
  };
}

function gateway(around: Surroundings): ProcessPlan {
  const clientId = clientIdOf('gateway');
  return {
    name: 'gateway',
    service: 'gateway',
    clientId,
    env: {
      ...base(around, around.ports.gateway, clientId),
      CHANCERY_GATEWAY_PORT: String(around.gatewayPort),
      CHANCERY_TENANT_HTTPS: at(around.ports.tenant.https),
      CHANCERY_WALLET_HTTPS: at(around.ports.wallet.https),
      CHANCERY_REGISTER_HTTPS: at(around.ports.register.https),
      CHANCERY_VALIDATOR_HTTPS: around.validators.map(({ ports }) => at(ports.https)).join(','),
    },
  };
}

/**
 * The processes in their start order, in stages. Those of one stage start at the same time, because no validator waits
 * for another one. They stop in the reverse order.
 */
export function planProcesses(around: Surroundings): readonly (readonly ProcessPlan[])[] {
  return [
    [tenant(around)],
    [wallet(around)],
    [register(around)],
    around.validators.map((place) => validator(around, place)),
    [gateway(around)],
  ];
}
