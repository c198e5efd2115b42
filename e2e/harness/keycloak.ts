import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { until } from './wait.ts';

/** A Keycloak for development on loopback, which keeps everything in memory. */
export interface Keycloak {
  readonly origin: string;
  /** Its group of processes. */
  readonly pid: number;
  stop(): void;
}

interface KeycloakOptions {
  /** Folder of an unpacked distribution. */
  readonly home: string;
  /** The representation of a realm; it has the member `realm`. */
  readonly realm: { readonly realm: string } & Readonly<Record<string, unknown>>;
  readonly flags?: readonly string[];
  /** A free one when absent. */
  readonly port?: number;
}

/** Starts Keycloak with one realm, and waits until it serves it. */
export async function startKeycloak(options: KeycloakOptions): Promise<Keycloak> {
  const { home, realm, flags = [], port = (await freePorts(1))[0] } = options;
  const imports = join(home, 'data/import');
  mkdirSync(imports, { recursive: true });
  writeFileSync(join(imports, `${realm.realm}.json`), JSON.stringify(realm));
  const own = ['--http-host=127.0.0.1', '--import-realm', '--db=dev-mem', '--http-management-port=0'];
  const child = spawn(join(home, 'bin/kc.sh'), ['start-dev', `--http-port=${port}`, ...own, ...flags], {
    stdio: 'ignore',
    detached: true,
  });
  const pid = child.pid ?? 0;
  // the whole group: the script starts Java
  const stop = () => void process.kill(-pid, 'SIGKILL');
  const origin = `http://127.0.0.1:${port}`;
  const path = `${origin}/realms/${realm.realm}/.well-known/openid-configuration`;
  try {
    await until('Keycloak to serve the realm', 180_000, async () => {
      if (child.exitCode !== null) throw new Error(`Keycloak ended with ${child.exitCode}`);
      const answer = await fetch(path).catch(() => undefined);
      return answer?.status === 200 ? true : undefined;
    });
  } catch (error) {
    if (child.exitCode === null) stop();
    throw error;
  }
  return { origin, pid, stop };
}
