import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { z } from 'zod';

/** Environment of a process: names to text. It is passed in, so that one process can hold the settings of several. */
export type Env = Readonly<Record<string, string | undefined>>;

/** One fault of a configuration. `name` is the environment variable; `message` never repeats its value. */
interface ConfigIssue {
  readonly name: string;
  readonly message: string;
}

/** Invalid configuration, with every fault found. A process exits with code 78 on it. */
export class ConfigError extends Error {
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    const lines = issues.map((issue) => `  ${issue.name}: ${issue.message}`);
    super(`invalid configuration (${issues.length})\n${lines.join('\n')}`);
    this.name = 'ConfigError';
    this.issues = issues;
  }
}

/** Bytes that no log, message or JSON may show: every way of printing them gives `[redacted]`. */
export class Secret {
  readonly #value: Buffer;

  constructor(value: Uint8Array | string) {
    this.#value = typeof value === 'string' ? Buffer.from(value, 'utf8') : Buffer.from(value);
  }

  /** A copy of the exact bytes. */
  reveal(): Buffer {
    return Buffer.from(this.#value);
  }

  /** The bytes as UTF-8 without the line end that editors and `echo` append. */
  text(): string {
    return this.#value.toString('utf8').replace(/\r?\n$/, '');
  }

  toString(): string {
    return '[redacted]';
  }

  toJSON(): string {
    return '[redacted]';
  }

  [inspect.custom](): string {
    return '[redacted]';
  }
}

/** A setting that names a file; its content becomes a `Secret`. Missing, unreadable and empty files are faults. */
export const secretFile = z.string().transform((path, context): Secret => {
  const content = readSecret(path);
  if (typeof content === 'string') {
    context.addIssue({ code: 'custom', message: content });
    return z.NEVER;
  }
  return new Secret(content);
});

function readSecret(path: string): Buffer | string {
  try {
    const content = readFileSync(path);
    return content.length === 0 ? 'the secret file is empty' : content;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return `the secret file cannot be read (${code})`;
  }
}

/** Address of another process. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Parses `host:port` or `[ipv6]:port` into `{host, port}`; the port is 1 to 65535. */
export const endpoint = z.string().transform((text, context): Endpoint => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port < 1 || port > 65_535) {
    context.addIssue({ code: 'custom', message: 'expected host:port' });
    return z.NEVER;
  }
  return { host, port };
});

/** A listening port: 0 (any free one) to 65535. */
export const port = z.coerce.number().int().min(0).max(65_535);

/** `true`, `false`, `1`, `0`, `yes` or `no`. */
export const flag = z.stringbool({ truthy: ['true', '1', 'yes'], falsy: ['false', '0', 'no'] });

/** Sources of a process's identity: `loadConfig` requires exactly one of the socket and the issuer. */
export const identitySettings = {
  SPIFFE_ENDPOINT_SOCKET: z
    .string()
    .regex(/^unix:/, 'expected unix:/path')
    .optional()
    .describe('SPIFFE Workload API, as unix:/path; this or CHANCERY_IDENTITY_ISSUER.'),
  CHANCERY_IDENTITY_ISSUER: z
    .string()
    .regex(/^https:\/\/[^/?#@\s]+$/, 'expected https://host:port')
    .optional()
    .describe('Issuer that gives an SVID for a ServiceAccount token; this or SPIFFE_ENDPOINT_SOCKET.'),
  CHANCERY_IDENTITY_TOKEN_FILE: z
    .string()
    .default('/var/run/chancery/identity/token')
    .describe('Projected ServiceAccount token for the issuer; read again at each use.'),
  CHANCERY_IDENTITY_CA_FILE: z
    .string()
    .default('/var/run/chancery/identity/ca.crt')
    .describe('PEM of the authorities of the installation, for the issuer; read again at each use.'),
};

/** Settings that every process has. Spread it into the schema of a component. */
export const commonSettings = {
  CHANCERY_INSTALLATION: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/, 'expected a DNS name')
    .describe('Name of the installation: SPIFFE trust domain and issuer of tokens.'),
  CHANCERY_LISTEN_HOST: z.string().default('0.0.0.0').describe('Address that the listeners bind to.'),
  CHANCERY_OPS_PORT: port
    .default(9090)
    .describe('Plain HTTP port of /alive, /ready, /health and /metrics; 0 takes any free one.'),
  CHANCERY_HTTPS_PORT: port.default(7443).describe('Mutual-TLS HTTP port; 0 takes any free one.'),
  CHANCERY_GRPC_PORT: port.default(7000).describe('Mutual-TLS gRPC port; 0 takes any free one.'),
  CHANCERY_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest level that is logged.'),
  CHANCERY_RATE_LIMIT_PROFILE: z
    .enum(['production', 'development'])
    .default('production')
    .describe('development switches throughput limits off; caps on guessing stay.'),
  ...identitySettings,
  NATS_URL: z.string().min(1).describe('NATS servers of the doorbells, nats://host:port.'),
  CHANCERY_NATS_CA_FILE: secretFile
    .optional()
    .describe('File with the certificates (PEM) that NATS servers are judged by; TLS is off without it.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url()
    .optional()
    .describe('OpenTelemetry collector (OTLP over HTTP); tracing is off without it.'),
};

/** Settings of a component with a database. */
export const databaseSettings = {
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'expected postgres://')
    .describe('PostgreSQL connection of the component; its role may create its schema.'),
  CHANCERY_DATABASE_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(4)
    .max(200)
    .default(10)
    .describe('Most connections of this process to PostgreSQL.'),
};

/** Settings of a run that only migrates. */
export const migrationSettings = z.object({ DATABASE_URL: databaseSettings.DATABASE_URL });

/**
 * Validates the settings of one process. Schema keys are environment names; empty text counts as absent;
 * an unknown `CHANCERY_*` name is a fault.
 *
 * @throws ConfigError with all faults, none of which repeats a value.
 */
export function loadConfig<S extends z.ZodObject>(schema: S, env: Env): z.output<S> {
  return loadPart(schema, schema, env);
}

/**
 * Like loadConfig, for a part of the settings of a process. Settings of `whole` may be present too; neither they nor
 * the files that they name are read.
 */
export function loadPart<S extends z.ZodObject>(schema: S, whole: z.ZodObject, env: Env): z.output<S> {
  const names = Object.keys(schema.shape);
  const given = Object.fromEntries(
    names.flatMap((name) => (env[name] === undefined || env[name] === '' ? [] : [[name, env[name]]])),
  );
  const result = schema.safeParse(given);
  const issues = [
    ...unknownNames([...names, ...Object.keys(whole.shape)], env),
    ...(result.success ? [] : faults(result.error, given)),
    ...identityFaults(names, given),
  ];
  if (!result.success || issues.length > 0) {
    throw new ConfigError(issues);
  }
  return result.data;
}

function unknownNames(known: readonly string[], env: Env): ConfigIssue[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('CHANCERY_') && env[name] !== undefined && !known.includes(name))
    .map((name) => ({ name, message: 'unknown setting' }));
}

function identityFaults(names: readonly string[], given: Readonly<Record<string, unknown>>): ConfigIssue[] {
  const [socket, issuer] = ['SPIFFE_ENDPOINT_SOCKET', 'CHANCERY_IDENTITY_ISSUER'] as const;
  if (!names.includes(socket) || !names.includes(issuer)) return [];
  const count = [socket, issuer].filter((name) => given[name] !== undefined).length;
  if (count === 1) return [];
  const message = count === 0 ? `required, unless ${issuer} is set` : `set this or ${issuer}, not both`;
  return [{ name: socket, message }];
}

function faults(error: z.ZodError, given: Readonly<Record<string, unknown>>): ConfigIssue[] {
  return error.issues.map((issue) => {
    const name = String(issue.path[0] ?? 'configuration');
    const absent = issue.path.length > 0 && given[name] === undefined;
    return { name, message: absent ? 'required' : issue.message };
  });
}

/** A row of the settings tables in README and chart. */
interface SettingRow {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly defaultValue: string | undefined;
}

/** Lists the settings of a schema in its order, for documentation. Secrets have no default to show. */
export function describeSettings(schema: z.ZodObject): SettingRow[] {
  return Object.entries(schema.shape).map(([name, type]) => {
    const bare = type.safeParse(undefined);
    const value = bare.success ? bare.data : undefined;
    return {
      name,
      description: type.description ?? '',
      required: !bare.success,
      defaultValue: value === undefined ? undefined : String(value),
    };
  });
}
