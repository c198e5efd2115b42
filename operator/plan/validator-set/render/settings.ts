import { canonicalQuantity, quantityBytes, quantityMilli } from '../../../api/quantity.ts';
import { COMPONENT, HTTPS_PORT, OPS_PORT, paths, type RenderInput } from './input.ts';

const KIBI = 1024n;
const SEGMENT_MOST = 16n * KIBI * KIBI;
const SEGMENT_LEAST = 64n * KIBI;

type Settings = Readonly<Record<string, string>>;

/** Size of the log: a quarter of the volume, in at least four segments (components/validator/config.ts). */
function logSettings(size: string): Settings {
  const retain = quantityBytes(size) / 4n;
  const quarter = retain / 4n;
  const segment = quarter > SEGMENT_MOST ? SEGMENT_MOST : quarter < SEGMENT_LEAST ? SEGMENT_LEAST : quarter;
  return {
    CHANCERY_LOG_RETAIN_BYTES: String(retain),
    CHANCERY_LOG_SEGMENT_BYTES: String(segment),
  };
}

/** Verification threads: the CPU limit or request of the pod, because the CPUs of the node are shared. */
function workers({ set, installation }: RenderInput): string {
  const { requests = {}, limits = {} } = set.spec.resources ?? installation.validators.resources;
  const cpu = limits['cpu'] ?? requests['cpu'] ?? '1';
  const threads = (quantityMilli(canonicalQuantity(cpu)) + 999n) / 1000n;
  return String(threads > 64n ? 64n : threads < 1n ? 1n : threads);
}

function identitySettings({ identity }: RenderInput['installation']): Settings {
  return identity.provider === 'spire'
    ? { SPIFFE_ENDPOINT_SOCKET: `unix:${paths.workloadApi}/${identity.socketFile}` }
    : {
        CHANCERY_IDENTITY_ISSUER: identity.issuer,
        CHANCERY_IDENTITY_TOKEN_FILE: `${paths.identity}/token`,
        CHANCERY_IDENTITY_CA_FILE: `${paths.identity}/ca.crt`,
      };
}

function natsSettings({ endpoints }: RenderInput['installation']): Settings {
  const { url, caConfigMap } = endpoints.nats;
  return {
    ...(url === undefined ? {} : { NATS_URL: url }),
    ...(caConfigMap === undefined ? {} : { CHANCERY_NATS_CA_FILE: `${paths.natsCa}/ca.crt` }),
  };
}

const text = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

/** Settings of all members; settings that differ by pod are in the pod template. */
export function memberSettings(input: RenderInput): Settings {
  const { set, installation } = input;
  const { spec } = set;
  const { tenant, wallet, register } = installation.endpoints;
  const { logLevel, rateLimitProfile, tracingEndpoint } = installation.validators;
  return {
    CHANCERY_INSTALLATION: installation.installation,
    CHANCERY_DATA_DIR: `${paths.data}/log`,
    CHANCERY_OPS_PORT: String(OPS_PORT),
    CHANCERY_HTTPS_PORT: String(HTTPS_PORT),
    CHANCERY_GRPC_PORT: String(spec.service.port),
    CHANCERY_LOG_LEVEL: logLevel,
    CHANCERY_RATE_LIMIT_PROFILE: rateLimitProfile,
    CHANCERY_TENANT_HTTPS: text(tenant.https),
    CHANCERY_TENANT_GRPC: text(tenant.grpc),
    CHANCERY_TENANT_MTLS: text(tenant.mtls),
    CHANCERY_WALLET_GRPC: text(wallet.grpc),
    CHANCERY_REGISTER_GRPC: text(register.grpc),
    CHANCERY_POOL_MAX_TRANSACTIONS: String(spec.mempool.maxPerRegister),
    CHANCERY_POOL_MAX_BYTES: String(quantityBytes(spec.mempool.maxBytesPerRegister)),
    CHANCERY_POOL_MAX_BYTES_TOTAL: String(quantityBytes(spec.mempool.maxBytesTotal)),
    CHANCERY_VERIFY_WORKERS: workers(input),
    ...logSettings(spec.storage.size),
    ...identitySettings(installation),
    ...natsSettings(installation),
    ...(tracingEndpoint === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: tracingEndpoint }),
  };
}

/** Name of the container. */
export const CONTAINER = COMPONENT;
