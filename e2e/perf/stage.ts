import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { createLogger } from '#kit/log/log.ts';
import { startPostgres } from '../../components/standalone/postgres/embedded.ts';
import { type Api, createApi } from '../harness/api.ts';
import { createRegister, createWallet, signIn, type Wallet, waitOnline } from '../harness/journey.ts';
import { type ClientCertificate, fetchSvid } from '../harness/service-token.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import type { RawSettings } from './raw/installation.ts';

/** A running installation of separate processes, with one register that all validators are members of. */
export interface Installation {
  readonly system: LocalSystem;
  readonly api: Api;
  readonly token: string;
  readonly registerId: string;
  readonly owner: Wallet;
  readonly svid: Required<ClientCertificate>;
  /** The parent of all other processes of the system. */
  readonly launcherPid: number;
  pidOf(process: string): number;
  /** A listener of a component process, from its environment. */
  addressOf(process: string, kind: 'HTTPS' | 'OPS'): string;
  /** The HTTPS listeners of all validators. */
  validatorUrls(): readonly string[];
  /** A connection to the register service's own listener. */
  readonly registerListener: Pool;
  /** Keep-alive connections to a listener that requires a client certificate. */
  pool(origin: string, connections: number): Pool;
  /** A new token, because `token` expires in long runs. */
  freshToken(): Promise<string>;
  close(): Promise<void>;
}

/** An installation, and a database for the raw programs beside it. */
export interface Stage extends Installation {
  readonly rawDatabaseUrl: string;
  readonly rawDatabasePid: number;
  readonly dir: string;
}

/** Where a process listens, host:port. */
function portOf(pid: number, kind: string): string {
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  const wanted = `CHANCERY_${kind}_PORT=`;
  return `127.0.0.1:${environment.find((one) => one.startsWith(wanted))?.slice(wanted.length)}`;
}

/** Starts an installation in `dir`, from this source tree or from another one. */
export async function install(dir: string, validators: number, source?: string): Promise<Installation> {
  const args = ['--processes', '--validators', String(validators)];
  const system = await startSystem({
    dataDir: join(dir, 'state'),
    args,
    deadlineMs: 120_000,
    ...(source === undefined ? {} : { source }),
  });
  const api = createApi(system.state.gatewayUrl);
  const { access_token: token } = await signIn(api, system.state);
  const owner = await createWallet(api, token, 'ED25519');
  const registerId = await createRegister(api, token, 'Bench register', owner);
  await waitOnline(api, token, registerId);
  const svid = await fetchSvid(system.state, 'service-operator');
  const pidOf = (name: string): number =>
    system.current().processes.find((one) => one.name === name)?.pid ?? 0;
  const addressOf = (name: string, kind: 'HTTPS' | 'OPS'): string =>
    `${kind === 'OPS' ? 'http' : 'https'}://${portOf(pidOf(name), kind)}`;
  const pool = (origin: string, connections: number): Pool =>
    new Pool(origin, { connections, connect: { ...svid, checkServerIdentity: () => undefined } });
  const registerListener = pool(addressOf('register', 'HTTPS'), 1);
  return {
    system,
    api,
    token,
    registerId,
    owner,
    svid,
    launcherPid: system.state.processes.find((one) => one.name === 'local')?.pid ?? 0,
    pidOf,
    addressOf,
    validatorUrls: () => system.state.validators.map(({ https }) => `https://${https}`),
    registerListener,
    pool,
    freshToken: async () => (await signIn(api, system.state)).access_token,
    close: async () => {
      await registerListener.close();
      await system.stop();
    },
  };
}

/** Starts an installation and a database for the raw programs. */
export async function openStage(validators: number): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), 'chancery-bench-'));
  const log = createLogger({ service: 'bench', level: 'silent' });
  const postgres = await startPostgres({ dataDir: join(dir, 'raw-pg'), socketDir: join(dir, 'raw-s'), log });
  const installation = await install(dir, validators);
  return {
    ...installation,
    rawDatabaseUrl: postgres.url('postgres'),
    rawDatabasePid: postgres.pid,
    dir,
    close: async () => {
      await installation.close();
      await postgres.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Settings of the raw programs of one measurement, with the thread counts of the product for that many validators. */
export function rawSettings(stage: Stage, name: string, validators: number): RawSettings {
  const threads = Math.max(
    1,
    availableParallelism() > 2 ? availableParallelism() - 1 : availableParallelism(),
  );
  return {
    ...stage.svid,
    databaseUrl: stage.rawDatabaseUrl,
    schema: name,
    logFile: join(stage.dir, `raw-${name}.log`),
    validators,
    workers: validators === 1 ? threads : 1,
    storeWorkers: threads,
  };
}
