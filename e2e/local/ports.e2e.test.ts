import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '#kit/log/log.ts';
import { startLocal } from '../../components/standalone/local.ts';
import { installedServices, type LocalServices, type Starter } from '../../components/standalone/starters.ts';
import { openStateDirectory } from '../../components/standalone/state/directory.ts';
import { createApi } from '../harness/api.ts';
import { signIn } from '../harness/journey.ts';

function listen(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

describe('ports of local mode', () => {
  let root = '';
  let others: Server[] = [];

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'chancery-ports-'));
    others = [];
  });
  afterEach(async () => {
    await Promise.all(others.map((server) => new Promise((resolve) => server.close(resolve))));
    rmSync(root, { recursive: true, force: true });
  });

  /** Services of which one finds a chosen port taken by another process, once. */
  function takenOnce(service: 'wallet' | 'register', setting: string, all: LocalServices): LocalServices {
    const own = all.starters[service];
    if (own === undefined) throw new RangeError(`${service} has no starter`);
    let isTaken = false;
    const starter: Starter = async (process) => {
      if (!isTaken) {
        isTaken = true;
        others.push(await listen(Number(process.env[setting])));
      }
      return await own(process);
    };
    return { ...all, starters: { ...all.starters, [service]: starter } };
  }

  const start = (services: LocalServices, port = 0) => {
    const log = createLogger({ service: 'local', level: 'silent' });
    const directory = openStateDirectory(root);
    const options = {
      dataDir: root,
      port,
      processes: false,
      validators: 1,
      again: undefined,
      recover: undefined,
    };
    const quiet = { log, logOf: () => log, onChange: () => undefined, recover: async () => '' };
    return startLocal({ options, directory, external: {}, services, ...quiet });
  };

  test('that another process binds after they were chosen are replaced by other ones', {
    timeout: 300_000,
  }, async () => {
    const once = takenOnce('wallet', 'CHANCERY_HTTPS_PORT', installedServices);
    const local = await start(takenOnce('register', 'CHANCERY_GRPC_PORT', once));
    try {
      expect(others).toHaveLength(2);
      await signIn(createApi(local.state.gatewayUrl), local.state);
    } finally {
      await local.stop();
    }
  });

  test('that a person gives and another process has are refused at once, with the reason', async () => {
    const other = await listen(0);
    others.push(other);
    const { port } = other.address() as AddressInfo;
    await expect(start(installedServices, port)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
  });
});
