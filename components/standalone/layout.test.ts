import { describe, expect, test } from 'vitest';
import { clientIds, type Ports, planProcesses, type Surroundings } from './layout.ts';

const ports = (first: number): Ports => ({ ops: first, https: first + 1, grpc: first + 2 });

const around: Surroundings = {
  installation: 'dev-local',
  gatewayPort: 8080,
  ports: {
    tenant: ports(10),
    wallet: ports(20),
    register: ports(30),
    validator: ports(40),
    gateway: ports(50),
  },
  tenantMtlsPort: 60,
  tenantInternalPort: 61,
  natsUrl: 'nats://127.0.0.1:70',
  databaseUrl: (service) => `postgres://${service}`,
  socket: (clientId) => `/s/${clientId}.sock`,
  adminEmail: 'admin@chancery.local',
  files: {
    adminPassword: '/f/password',
    protectionKey: '/f/protection',
    keyEncryptionKey: '/f/kek',
    serviceSecrets: '/f/services',
    validatorData: '/f/validator-0',
  },
};

describe('the processes of local mode', () => {
  const plans = planProcesses(around);

  test('start in the order of the design: nobody calls upwards during start', () => {
    expect(plans.map(({ service }) => service)).toEqual([
      'tenant',
      'wallet',
      'register',
      'validator',
      'gateway',
    ]);
  });

  test('each has an identity of its own that the issuer knows', () => {
    const ids = plans.map(({ clientId }) => clientId);
    expect(new Set(ids).size).toBe(plans.length);
    for (const { clientId, env } of plans) {
      expect(clientIds).toContain(clientId);
      expect(env['SPIFFE_ENDPOINT_SOCKET']).toBe(`unix:/s/${clientId}.sock`);
    }
  });

  test('only the components that store get a database, each its own', () => {
    const urls = plans.flatMap(({ env }) => env['DATABASE_URL'] ?? []);
    expect(urls).toEqual(['postgres://tenant', 'postgres://wallet', 'postgres://register']);
  });

  test('everything listens on loopback, and no port is used twice', () => {
    const used = plans.flatMap(({ env }) =>
      Object.entries(env).flatMap(([name, value]) => (name.endsWith('_PORT') ? [value] : [])),
    );
    expect(new Set(used).size).toBe(used.length);
    expect(plans.every(({ env }) => env['CHANCERY_LISTEN_HOST'] === '127.0.0.1')).toBe(true);
  });
});
