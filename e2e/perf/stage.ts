import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { createLogger } from '#kit/log/log.ts';
import { startPostgres } from '../../components/standalone/postgres/embedded.ts';
import { type Api, createApi } from '../harness/api.ts';
import { createRegister, createWallet, signIn, type Wallet, waitOnline } from '../harness/journey.ts';
import { type ClientCertificate, fetchSvid } from '../harness/service-token.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

/** What every measurement plays on: a running system of separate processes and a database for the raw programs. */
export interface Stage {
  readonly system: LocalSystem;
  readonly api: Api;
  readonly token: string;
  readonly registerId: string;
  readonly owner: Wallet;
  readonly svid: Required<ClientCertificate>;
  readonly rawDatabaseUrl: string;
  readonly dir: string;
  pidOf(process: string): number;
  /** Keep-alive connections to a listener that asks for a client certificate. */
  pool(origin: string, connections: number): Pool;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), 'chancery-bench-'));
  const log = createLogger({ service: 'bench', level: 'silent' });
  const postgres = await startPostgres({ dataDir: join(dir, 'raw-pg'), socketDir: join(dir, 'raw-s'), log });
  const system = await startSystem({ dataDir: join(dir, 'state'), args: ['--processes'] });
  const api = createApi(system.state.gatewayUrl);
  const { access_token: token } = await signIn(api, system.state);
  const owner = await createWallet(api, token, 'ED25519');
  const registerId = await createRegister(api, token, 'Bench register', owner);
  await waitOnline(api, token, registerId);
  const svid = await fetchSvid(system.state, 'service-operator');
  return {
    system,
    api,
    token,
    registerId,
    owner,
    svid,
    rawDatabaseUrl: postgres.url('postgres'),
    dir,
    pidOf: (name) => system.state.processes.find((one) => one.name === name)?.pid ?? 0,
    pool: (origin, connections) =>
      new Pool(origin, { connections, connect: { ...svid, checkServerIdentity: () => undefined } }),
    close: async () => {
      await system.stop();
      await postgres.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
