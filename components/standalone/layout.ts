/** The processes of local mode as data: who runs, in which order, with which environment. Pure. */

export type ServiceName = 'tenant' | 'wallet' | 'register' | 'validator' | 'gateway';

/** One process: its name, the client id of its SVID and the environment it reads. */
export interface ProcessPlan {
  readonly service: ServiceName;
  readonly clientId: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Ports {
  readonly ops: number;
  readonly https: number;
  readonly grpc: number;
}

/** What the plan is made from; every address is loopback. */
export interface Surroundings {
  readonly installation: string;
  readonly gatewayPort: number;
  readonly ports: Readonly<Record<ServiceName, Ports>>;
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
    readonly validatorData: string;
  };
}

export const validatorId = 'validator-0';

/** Every client id that gets an SVID and a secret in local mode; the operator's is used to upsert principals. */
export const clientIds: readonly string[] = [
  'service-operator',
  'service-gateway',
  'service-tenant',
  'service-wallet',
  'service-register',
  'service-peer',
  'service-blueprint',
  'service-credential',
  validatorId,
];

const at = (port: number): string => `127.0.0.1:${port}`;

function base(around: Surroundings, service: ServiceName, clientId: string): Record<string, string> {
  const { ops, https } = around.ports[service];
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

const grpcPort = (around: Surroundings, service: ServiceName): Record<string, string> => ({
  CHANCERY_GRPC_PORT: String(around.ports[service].grpc),
});

function tenant(around: Surroundings): ProcessPlan {
  const clientId = 'service-tenant';
  return {
    service: 'tenant',
    clientId,
    env: {
      ...base(around, 'tenant', clientId),
      ...grpcPort(around, 'tenant'),
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
  const clientId = 'service-wallet';
  return {
    service: 'wallet',
    clientId,
    env: {
      ...base(around, 'wallet', clientId),
      ...grpcPort(around, 'wallet'),
      ...tenantAddresses(around),
      DATABASE_URL: around.databaseUrl('wallet'),
      CHANCERY_KEK_FILE: around.files.keyEncryptionKey,
    },
  };
}

function register(around: Surroundings): ProcessPlan {
  const clientId = 'service-register';
  return {
    service: 'register',
    clientId,
    env: {
      ...base(around, 'register', clientId),
      ...grpcPort(around, 'register'),
      ...tenantAddresses(around),
      DATABASE_URL: around.databaseUrl('register'),
      CHANCERY_WALLET_GRPC: at(around.ports.wallet.grpc),
    },
  };
}

function validator(around: Surroundings): ProcessPlan {
  return {
    service: 'validator',
    clientId: validatorId,
    env: {
      ...base(around, 'validator', validatorId),
      ...grpcPort(around, 'validator'),
      ...tenantAddresses(around),
      CHANCERY_VALIDATOR_ID: validatorId,
      CHANCERY_VALIDATOR_ENDPOINT: at(around.ports.validator.grpc),
      CHANCERY_DATA_DIR: around.files.validatorData,
      CHANCERY_WALLET_GRPC: at(around.ports.wallet.grpc),
      CHANCERY_REGISTER_GRPC: at(around.ports.register.grpc),
    },
  };
}

function gateway(around: Surroundings): ProcessPlan {
  const clientId = 'service-gateway';
  return {
    service: 'gateway',
    clientId,
    env: {
      ...base(around, 'gateway', clientId),
      CHANCERY_GATEWAY_PORT: String(around.gatewayPort),
      CHANCERY_TENANT_HTTPS: at(around.ports.tenant.https),
      CHANCERY_WALLET_HTTPS: at(around.ports.wallet.https),
      CHANCERY_REGISTER_HTTPS: at(around.ports.register.https),
      CHANCERY_VALIDATOR_HTTPS: at(around.ports.validator.https),
    },
  };
}

/** The processes in their start order (decision D30); stopping goes the other way. */
export function planProcesses(around: Surroundings): readonly ProcessPlan[] {
  return [tenant(around), wallet(around), register(around), validator(around), gateway(around)];
}
