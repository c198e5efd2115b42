import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listServices } from '#core/identity/services.ts';
import { createLogger } from '#kit/log/log.ts';
import { createRpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { launchInProcess, launchProcesses } from './launch.ts';
import { freePorts } from './state/ports.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const program = `
import { z } from 'zod';
import { commonSettings } from '#kit/config/config.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createProcess } from '#kit/service/process.ts';

const create = createProcess({ name: 'small', assemble: async () => ({}), listen: async () => ({}) });
const { CHANCERY_INSTALLATION, CHANCERY_LISTEN_HOST, CHANCERY_OPS_PORT } = commonSettings;
const schema = z.object({ CHANCERY_INSTALLATION, CHANCERY_LISTEN_HOST, CHANCERY_OPS_PORT });
await run({ service: 'small', schema, create });
`;

/** A process that binds a port between its choice and the start of the one that it was chosen for. */
async function occupy(answer: RequestListener): Promise<number> {
  const server = createServer(answer);
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

describe('a launched component', () => {
  let folder = '';

  beforeAll(() => {
    mkdirSync(join(root, 'dist'), { recursive: true });
    folder = mkdtempSync(join(root, 'dist', 'launch-'));
    writeFileSync(join(folder, 'main.ts'), program);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const launch = (opsPort: number) => {
    const main = relative(root, join(folder, 'main.ts'));
    const row = {
      purpose: 'Tests',
      status: 'served',
      principalId: randomUUID(),
      scopes: [],
      calls: {},
      main,
    } as const;
    const start = launchProcesses(listServices({ small: row }), folder);
    const env = {
      CHANCERY_INSTALLATION: testInstallation,
      CHANCERY_LISTEN_HOST: '127.0.0.1',
      CHANCERY_OPS_PORT: String(opsPort),
    };
    return start({ name: 'small', service: 'small', clientId: 'service-small', env });
  };

  it('is ready when it has started', { timeout: 30_000 }, async () => {
    const [port = 0] = await freePorts(1);
    const running = await launch(port);
    expect((await fetch(`http://127.0.0.1:${port}/ready`)).status).toBe(200);
    await running.stop();
    expect(await running.ended).toBe('exit code 0');
  });

  it.each([
    [503, 'is not ready'],
    [200, 'answers that it is ready'],
  ])('has its port taken by a process that answers %i', { timeout: 30_000 }, async (status) => {
    const port = await occupy((_request, response) => void response.writeHead(status).end());
    await expect(launch(port)).rejects.toMatchObject({ kind: 'unavailable', code: 'PORT_TAKEN' });
  });

  it('has its gRPC port taken, in this process', async () => {
    const authority = await memoryAuthority(testInstallation);
    const workload = await fixedWorkload(authority, 'service-small');
    const port = await occupy((_request, response) => void response.end());
    const log = createLogger({ service: 'small', level: 'silent' });
    const small = async () => {
      const server = createRpcServer({ runtime: testRuntime('small'), workload, host: '127.0.0.1', port });
      try {
        await server.listen();
      } finally {
        await server.stop();
      }
      return { name: 'small', addresses: {}, stop: async () => undefined };
    };
    const start = launchInProcess({ services: [], starters: { small } }, () => log);
    const plan = { name: 'small', service: 'small', clientId: 'service-small', env: {} };
    await expect(start(plan)).rejects.toMatchObject({ kind: 'unavailable', code: 'PORT_TAKEN' });
  });
});
