import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listServices } from '#core/identity/services.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { clientIdsOf, type Layout, planProcesses } from '../../components/standalone/layout.ts';
import { startIssuer } from '../../components/svid-issuer/compose.ts';
import { createApi } from '../harness/api.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { startSystem } from '../harness/system.ts';

const ports = { ops: 1, https: 2, grpc: 3 };

function environments(socket: string): (string | undefined)[] {
  const layout: Layout = {
    services: listServices(),
    installation: 'dev-local',
    gatewayPort: 8080,
    ports: {
      tenant: ports,
      wallet: ports,
      register: ports,
      blueprint: ports,
      credential: ports,
      gateway: ports,
    },
    validators: [{ validatorId: 'validator-0', ports, dataDir: '/x' }],
    tenantMtlsPort: 4,
    tenantInternalPort: 5,
    natsUrl: 'nats://127.0.0.1:6',
    databaseUrl: () => 'postgres://x',
    socket: () => socket,
    adminEmail: 'admin@chancery.local',
    messagesDir: '/messages',
    files: {
      adminPassword: '/f/password',
      protectionKey: '/f/protection',
      keyEncryptionKey: '/f/kek',
      operationsKey: '/f/operations-key',
      serviceSecrets: '/f/services',
    },
  };
  return planProcesses(layout)
    .flat()
    .map(({ env }) => env['SPIFFE_ENDPOINT_SOCKET']);
}

const agentProgram = fileURLToPath(new URL('./attesting_agent.py', import.meta.url));
const attests = process.platform === 'linux' && spawnSync('python3', ['--version']).status === 0;

function startAgent(listen: string, folder: string): Promise<ChildProcess> {
  const agent = spawn('python3', [agentProgram, listen, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    agent.stdout.once('data', () => resolve(agent));
    agent.once('error', reject);
    agent.once('exit', (code) => reject(new Error(`the agent ended with ${code}`)));
  });
}

describe('an external Workload API', () => {
  test('is passed to every process as unix:..., however it was written', () => {
    for (const given of ['/run/agent.sock', 'unix:/run/agent.sock', 'unix:///run/agent.sock']) {
      const values = environments(given);
      expect(values).toHaveLength(7);
      for (const value of values) {
        expect(value).toMatch(/^unix:(\/\/)?\/run\/agent\.sock$/);
      }
    }
  });

  describe.skipIf(!attests)('on one socket, behind an agent that identifies processes', () => {
    let root = '';
    let issuer: Awaited<ReturnType<typeof startIssuer>>;
    let agent: ChildProcess;
    let given = '';

    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), 'chancery-spiffe-'));
      issuer = await startIssuer({
        dir: join(root, 'ca'),
        socketDir: join(root, 's'),
        installation: 'dev-local',
        services: clientIdsOf(listServices(), 1),
        log: createLogger({ service: 'given-identity', level: 'silent' }),
        clock: systemClock(),
      });
      given = join(root, 'agent.sock');
      agent = await startAgent(given, join(root, 's'));
    });

    afterAll(async () => {
      agent.kill();
      await issuer.stop();
      rmSync(root, { recursive: true, force: true });
    });

    test('gives each process of --processes its own identity, and a transaction is sealed', async () => {
      const env = { SPIFFE_ENDPOINT_SOCKET: `unix:${given}` };
      const system = await startSystem({ dataDir: join(root, 'data'), args: ['--processes'], env });
      try {
        expect(system.output()).toContain('identity given');
        const api = createApi(system.state.gatewayUrl);
        const { access_token: token } = await signIn(api, system.state);
        const owner = await createWallet(api, token, 'ED25519');
        const registerId = await createRegister(api, token, 'Given identity', owner);
        await waitOnline(api, token, registerId);
        const submit = (payload: unknown) =>
          submitThroughRegister(api, token, { registerId, sender: owner.walletAddress, payload });
        await waitConfirmed(api, token, registerId, await submit({ identity: 'given' }));
        await issuer.rotate();
        await waitConfirmed(api, token, registerId, await submit({ identity: 'rotated' }));
      } finally {
        expect((await system.stop()).code).toBe(0);
      }
    });

    test('with one identity for all components of one process is refused with the reason, and everything ends', async () => {
      const env = { SPIFFE_ENDPOINT_SOCKET: `unix:${given}` };
      await expect(startSystem({ dataDir: join(root, 'single'), env })).rejects.toThrow(
        /chancery: .*the server is spiffe:\/\/\S+, not spiffe:\/\//,
      );
    });
  });
});
