import { AppError } from '../errors/errors.ts';
import type { Scope } from './scopes.ts';
import { ROUTES, type RouteRule } from './service-routes.ts';

/** Kinds of listeners of a service; the ports are those of a pod. */
export const LISTENER_PORTS = {
  /** HTTP over mutual TLS. */
  https: 7443,
  /** gRPC over mutual TLS. */
  grpc: 7000,
  /** gRPC over mutual TLS between validators, or between installations. */
  peerGrpc: 5000,
  /** Service tokens over mutual TLS. */
  tokens: 8443,
} as const;
export type ListenerName = keyof typeof LISTENER_PORTS;

/** One row of a catalogue of services. */
export interface ServiceRow {
  /** Purpose of the service, in one line. */
  readonly purpose: string;
  /** `planned`: the service has an identity, no component, and its paths answer 503. */
  readonly status: 'served' | 'planned';
  /** Platform that it needs; local mode runs every served service without one. */
  readonly needs?: 'kubernetes';
  /** Id of the principal that every installation starts with. */
  readonly principalId: string;
  /** Scopes of its tokens. */
  readonly scopes: readonly Scope[];
  /** Its tokens carry `can_sign_system`. */
  readonly signsForSystem?: true;
  /** It has a schema and a role of its own in PostgreSQL. */
  readonly stores?: true;
  /** It has several members, each with an identity and a principal of its own: `validator-{member}`. */
  readonly members?: true;
  /** Entry file of its program, relative to the root of the repository. */
  readonly main?: string;
  /** The listeners that it calls, by service. Those that the gateway calls follow from the routes. */
  readonly calls: Readonly<Record<string, readonly ListenerName[]>>;
  /** The public paths that the gateway routes to it; the first match over all rows wins. */
  readonly routes?: readonly RouteRule[];
}

/** Services by name. In local mode a service starts after those of the rows above, and the gateway last. */
export type Catalogue = Readonly<Record<string, ServiceRow>>;

const TOKENS_AND_TENANT = ['https', 'grpc', 'tokens'] as const;

/**
 * The services of an installation: the single source of scopes, seeded principals, routes, network edges, SPIRE
 * entries, images, and the client ids and schemas of local mode.
 */
export const SERVICES = {
  gateway: {
    purpose: 'The one entrance for REST clients',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000009',
    scopes: [],
    main: 'components/gateway/main.ts',
    calls: {},
  },
  tenant: {
    purpose: 'Organisations, users and tokens',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000006',
    scopes: ['persona:crypto', 'wallets:status'],
    stores: true,
    main: 'components/tenant/main.ts',
    calls: { wallet: ['grpc', 'https'] },
    routes: ROUTES.tenant,
  },
  wallet: {
    purpose: 'Keys and signatures',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000002',
    scopes: ['registers:write', 'registers:read', 'devices:write', 'inbox:write', 'audit:write'],
    stores: true,
    main: 'components/wallet/main.ts',
    calls: { tenant: TOKENS_AND_TENANT, register: ['grpc'], blueprint: ['grpc'], credential: ['grpc'] },
    routes: ROUTES.wallet,
  },
  peer: {
    purpose: 'Replication between installations',
    status: 'planned',
    principalId: '00000000-0000-0000-0002-000000000004',
    scopes: ['dockets:write', 'registers:write', 'registers:read'],
    calls: {},
    routes: ROUTES.peer,
  },
  register: {
    purpose: 'Registers and their dockets',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000003',
    scopes: ['wallets:sign', 'validator:write'],
    signsForSystem: true,
    stores: true,
    main: 'components/register/main.ts',
    calls: { tenant: TOKENS_AND_TENANT, wallet: ['grpc'], validator: ['peerGrpc', 'https'] },
    routes: ROUTES.register,
  },
  validator: {
    purpose: 'Validates, votes and seals',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000005',
    scopes: ['dockets:write', 'registers:write', 'registers:read', 'blueprints:read'],
    signsForSystem: true,
    members: true,
    main: 'components/validator/main.ts',
    calls: {
      tenant: TOKENS_AND_TENANT,
      wallet: ['grpc'],
      register: ['grpc'],
      validator: ['peerGrpc', 'https'],
    },
    routes: ROUTES.validator,
  },
  blueprint: {
    purpose: 'Workflows over registers',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000001',
    scopes: [
      'wallets:sign',
      'wallets:decrypt',
      'registers:write',
      'blueprints:manage',
      'inbox:write',
      'audit:write',
    ],
    stores: true,
    main: 'components/blueprint/main.ts',
    calls: { tenant: TOKENS_AND_TENANT, wallet: ['grpc'], register: ['grpc', 'https'] },
    routes: ROUTES.blueprint,
  },
  credential: {
    purpose: 'Verifiable credentials, issued and verified',
    status: 'served',
    principalId: '00000000-0000-0000-0002-000000000007',
    scopes: ['registers:write', 'registers:read', 'wallets:sign', 'audit:write'],
    stores: true,
    main: 'components/credential/main.ts',
    calls: { tenant: TOKENS_AND_TENANT, wallet: ['grpc', 'https'], register: ['https'] },
    routes: ROUTES.credential,
  },
  operator: {
    purpose: 'Runs registers on Kubernetes',
    status: 'served',
    needs: 'kubernetes',
    principalId: '00000000-0000-0000-0002-00000000000a',
    scopes: ['principals:write', 'organizations:write', 'registers:write', 'registers:read', 'wallets:sign'],
    main: 'operator/main.ts',
    calls: {
      tenant: TOKENS_AND_TENANT,
      wallet: ['https', 'grpc'],
      register: ['https', 'grpc'],
      validator: ['peerGrpc', 'https'],
    },
  },
  'tool-server': {
    purpose: 'Tools for language models (MCP)',
    status: 'planned',
    principalId: '00000000-0000-0000-0002-00000000000b',
    scopes: ['audit:write'],
    calls: {},
    routes: ROUTES['tool-server'],
  },
} as const satisfies Catalogue;

export type ServiceName = keyof typeof SERVICES;

/** One service of a catalogue. */
export interface Service extends ServiceRow {
  readonly name: string;
  readonly routes: readonly RouteRule[];
}

/** The services of a catalogue, in its order. */
export function listServices(catalogue: Catalogue = SERVICES): readonly Service[] {
  return Object.entries(catalogue).map(([name, row]) => ({
    ...row,
    name,
    calls: name === 'gateway' ? callsOfRoutes(catalogue) : row.calls,
    routes: row.routes ?? [],
  }));
}

function callsOfRoutes(catalogue: Catalogue): ServiceRow['calls'] {
  const routed = Object.entries(catalogue).filter(([, { routes = [] }]) => routes.length > 0);
  return Object.fromEntries(routed.map(([name]) => [name, ['https']]));
}

/** The row of a service of the installation. */
export function serviceOf(name: ServiceName): ServiceRow {
  return SERVICES[name];
}

/** Client id of a service that has one member: `service-{name}`. */
export function clientIdOf(name: string): string {
  return `service-${name}`;
}

/** Environment name of the setting with the address of a listener: `CHANCERY_TENANT_MTLS`. */
export function addressSettingOf<L extends AddressedListener>(
  service: string,
  listener: L,
): AddressSetting<L> {
  return `CHANCERY_${service.toUpperCase().replaceAll('-', '_')}_${addressSuffixes[listener]}`;
}

const addressSuffixes = { https: 'HTTPS', grpc: 'GRPC', tokens: 'MTLS' } as const;

/** A listener whose address is a setting of its callers. */
export type AddressedListener = keyof typeof addressSuffixes;
type AddressSetting<L extends AddressedListener> = `CHANCERY_${string}_${(typeof addressSuffixes)[L]}`;

/** The service of the installation that a client id belongs to: `service-{name}`, or `validator-{member}`. */
export function findServiceName(clientId: string): ServiceName | undefined {
  if (/^validator-[a-z0-9][a-z0-9.-]*$/.test(clientId)) return 'validator';
  return names.find((name) => clientIdOf(name) === clientId && serviceOf(name).members !== true);
}

const names = Object.keys(SERVICES) as readonly ServiceName[];

/** The service of a client id; throws AppError invalid UNKNOWN_CLIENT_ID. */
export function parseServiceName(clientId: string): ServiceName {
  const name = findServiceName(clientId);
  if (name === undefined) throw new AppError('invalid', 'UNKNOWN_CLIENT_ID', 'Client id names no service');
  return name;
}
