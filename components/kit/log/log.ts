import { trace } from '@opentelemetry/api';
import {
  type DestinationStream,
  type LoggerOptions,
  type Logger as PinoLogger,
  pino,
  stdTimeFunctions,
} from 'pino';

/**
 * Structured log of one component. Field names: `service`, `component`, `requestId`, `traceId`, `method`, `route`,
 * `status`, `durationMs`, `registerId`, `txId`, `docketNumber`, `organizationId`, `userId`, `clientId`, `peer`,
 * `subject`, `attempt`, `count`, `err`. Values never contain a secret or a payload.
 */
export type Logger = PinoLogger;

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

interface LoggerSettings {
  readonly service: string;
  readonly level: LogLevel;
  /** Destination of the lines; standard output when absent. */
  readonly destination?: DestinationStream;
}

const secretNames = [
  'password',
  'passphrase',
  'secret',
  'clientSecret',
  'client_secret',
  'token',
  'accessToken',
  'access_token',
  'refreshToken',
  'refresh_token',
  'subjectToken',
  'authorization',
  'cookie',
  'privateKey',
  'private_key',
  'mnemonic',
  'seed',
];

const redactedPaths = [
  ...secretNames.flatMap((name) => [name, `*.${name}`]),
  'headers["set-cookie"]',
  '*.headers.authorization',
  '*.headers.cookie',
  '*.headers["x-subject-token"]',
];

/** Creates the JSON logger of a component: ISO times, level names, the active trace id, known secrets redacted. */
export function createLogger(settings: LoggerSettings): Logger {
  const options: LoggerOptions = {
    level: settings.level,
    base: { service: settings.service },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: redactedPaths, censor: '[redacted]' },
    mixin: activeTrace,
  };
  return settings.destination === undefined ? pino(options) : pino(options, settings.destination);
}

function activeTrace(): Record<string, string> {
  const span = trace.getActiveSpan();
  return span === undefined ? {} : { traceId: span.spanContext().traceId };
}
