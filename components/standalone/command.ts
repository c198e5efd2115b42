import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { AppError } from '#core/errors/errors.ts';
import { createLogger } from '#kit/log/log.ts';
import { startTracing } from '#kit/telemetry/tracing.ts';
import type { ExternalParts } from './infrastructure.ts';
import { type Local, startLocal } from './local.ts';
import { parseEndpoints, parseOptions, usage } from './options.ts';
import { describeChange, describeStart } from './screen.ts';
import { installedServices, recoverAccount } from './starters.ts';
import { askControl } from './state/control.ts';
import { openStateDirectory, type StateDirectory } from './state/directory.ts';
import { lockDirectory } from './state/lock.ts';
import type { FleetEvent } from './supervise.ts';

/** Time that stopping may take; the documented maximum for Ctrl-C is five seconds. */
const stopDeadlineMs = 4_900;

async function main(): Promise<number> {
  const startedAt = performance.now();
  const options = parseOptions(process.argv.slice(2));
  const directory = openStateDirectory(options.dataDir);
  if (options.again !== undefined) return again(directory, options.again);
  if (options.recover !== undefined) return recover(directory, options.recover);
  const unlock = await lockDirectory(directory.sockets, directory.root);
  const destination = pino.destination({
    dest: join(directory.logs, 'chancery.log'),
    mkdir: true,
    sync: false,
  });
  const logOf = (service: string) => createLogger({ service, level: 'info', destination });
  const log = logOf('local');
  const stopTracing = await startTracing(process.env, 'chancery');
  const onChange = (event: FleetEvent): void => {
    process.stdout.write(describeChange(event, directory.root));
  };
  const local = await startLocal({
    options,
    directory,
    external: externalParts(),
    services: installedServices,
    recover: recoverAccount,
    log,
    logOf,
    onChange,
  });
  announce(local, directory, (performance.now() - startedAt) / 1000);
  const reason = await Promise.race([interrupted(), local.broken]);
  process.stdout.write(
    reason === 'interrupted' ? 'Stopping.\n' : `${reason}. Stopping; see ${directory.logs}\n`,
  );
  const stopped = await within(stopDeadlineMs, local.stop().then(stopTracing));
  rmSync(directory.localJson, { force: true });
  await unlock();
  rmSync(directory.sockets, { recursive: true, force: true });
  destination.flushSync();
  process.stdout.write(
    stopped ? 'Stopped.\n' : `Not everything stopped within ${stopDeadlineMs / 1000} s.\n`,
  );
  return reason === 'interrupted' && stopped ? 0 : 1;
}

/**
 * Requests from the running Chancery of the directory to restart one of its validators, and waits until it is ready.
 */
async function recover(directory: StateDirectory, address: string): Promise<number> {
  const link = await askControl(directory.sockets, directory.root, `recover ${address}`);
  process.stdout.write(`The account is unlocked. Within one hour, this link sets a new password:\n${link}\n`);
  return 0;
}

async function again(directory: StateDirectory, name: string): Promise<number> {
  const pid = await askControl(directory.sockets, directory.root, `again ${name}`);
  process.stdout.write(`${name} runs again, process ${pid}.\n`);
  return 0;
}

/** Settings of services that local mode takes from its own environment. */
const passedOn = {
  tenant: [
    'CHANCERY_SOCIAL_PROVIDERS_FILE',
    'CHANCERY_OUTBOUND_ALLOWED',
    'CHANCERY_PASSWORD_BREACH_API',
    'Auth__ReturnToAllowlist__Hosts',
    'Trust__TrustListStrictFreshness',
  ],
  gateway: ['CHANCERY_UI_UPSTREAM'],
  credential: [
    'CHANCERY_OUTBOUND_ALLOWED',
    'Haip__IssuerUrl',
    'Haip__Profile',
    'Haip__AttestationAuthorities',
    'Haip__RequireKeyAttestation',
    'Haip__PublicHost',
    'Haip__VerifierCertificate',
    'Haip__VerifierCertificatePassword',
  ],
} as const;

function settingsOf(service: keyof typeof passedOn): Record<string, string> {
  return Object.fromEntries(
    passedOn[service].flatMap((name) => {
      const value = process.env[name];
      return value ? [[name, value] as const] : [];
    }),
  );
}

function externalParts(): ExternalParts {
  const { DATABASE_URL, NATS_URL, SPIFFE_ENDPOINT_SOCKET, CHANCERY_VALIDATOR_ENDPOINTS } = process.env;
  const { CHANCERY_KEY_FILTERS } = process.env;
  return {
    ...(CHANCERY_KEY_FILTERS ? { keyFilters: CHANCERY_KEY_FILTERS } : {}),
    settings: {
      tenant: settingsOf('tenant'),
      gateway: settingsOf('gateway'),
      credential: settingsOf('credential'),
    },
    ...(DATABASE_URL ? { databaseUrl: DATABASE_URL } : {}),
    ...(NATS_URL ? { natsUrl: NATS_URL } : {}),
    ...(SPIFFE_ENDPOINT_SOCKET ? { spiffeSocket: SPIFFE_ENDPOINT_SOCKET } : {}),
    ...(CHANCERY_VALIDATOR_ENDPOINTS
      ? { validatorEndpoints: parseEndpoints(CHANCERY_VALIDATOR_ENDPOINTS) }
      : {}),
  };
}

function announce(local: Local, directory: StateDirectory, seconds: number): void {
  const { gatewayUrl, mtlsTokenUrl, adminPasswordFile } = local.state;
  const screen = describeStart({
    gatewayUrl,
    mtlsTokenUrl,
    adminEmail: local.state.adminEmail,
    adminPasswordFile,
    dataDir: directory.root,
    validators: local.state.validators.length,
    seconds,
    embedded: local.embedded,
  });
  process.stdout.write(screen);
}

function interrupted(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => resolve('interrupted'));
    }
  });
}

async function within(deadlineMs: number, work: Promise<void>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), deadlineMs);
  work.then(
    () => resolve(true),
    () => resolve(false),
  );
  const done = await promise;
  clearTimeout(timer);
  return done;
}

function explain(error: unknown): string {
  if (error instanceof AppError && error.code === 'INVALID_REQUEST') {
    return `${error.message}\n\n${usage}`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Runs local mode until Ctrl-C; returns the exit code, and writes messages for people to standard error. */
export async function command(): Promise<number> {
  try {
    return await main();
  } catch (error) {
    process.stderr.write(`chancery: ${explain(error)}\n`);
    return 1;
  }
}
