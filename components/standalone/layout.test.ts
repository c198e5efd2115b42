import { describe, expect, expectTypeOf, test } from 'vitest';
import { type Catalogue, listServices } from '#core/identity/services.ts';
import { clientIdsOf, isLocal, type Layout, type Ports, planProcesses, validatorIds } from './layout.ts';
import { localServicesOf, type Starter, starters } from './starters.ts';

const services = listServices();

const ports = (first: number): Ports => ({ ops: first, https: first + 1, grpc: first + 2 });

const layoutOf = (validators: number): Layout => ({
  services,
  installation: 'dev-local',
  gatewayPort: 8080,
  ports: {
    tenant: ports(10),
    wallet: ports(20),
    register: ports(30),
    blueprint: ports(40),
    credential: ports(45),
    gateway: ports(50),
  },
  validators: validatorIds(validators).map((validatorId, index) => ({
    validatorId,
    ports: ports(100 + 10 * index),
    dataDir: `/f/${validatorId}`,
  })),
  tenantMtlsPort: 60,
  tenantInternalPort: 61,
  natsUrl: 'nats://127.0.0.1:70',
  databaseUrl: (service) => `postgres://${service}`,
  socket: (clientId) => `/s/${clientId}.sock`,
  adminEmail: 'admin@chancery.local',
  messagesDir: '/messages',
  files: {
    adminPassword: '/f/password',
    protectionKey: '/f/protection',
    keyEncryptionKey: '/f/kek',
    operationsKey: '/f/operations-key',
    serviceSecrets: '/f/services',
  },
});

describe.each([1, 4, 7])('the processes of local mode with %i validators', (count) => {
  const stages = planProcesses(layoutOf(count));
  const plans = stages.flat();

  test('start in order: none calls a later one during its start, and no validator waits for another', () => {
    expect(stages.map((stage) => stage.map(({ name }) => name))).toEqual([
      ['tenant'],
      ['wallet'],
      ['register'],
      validatorIds(count),
      ['blueprint'],
      ['credential'],
      ['gateway'],
    ]);
  });

  test('each validator has an identity, a log and an endpoint of its own', () => {
    const validators = plans.filter(({ service }) => service === 'validator');
    expect(validators).toHaveLength(count);
    for (const { name, clientId, env } of validators) {
      expect([clientId, env['CHANCERY_VALIDATOR_ID']]).toEqual([name, name]);
      expect(env['CHANCERY_VALIDATOR_ENDPOINT']).toBe(`127.0.0.1:${env['CHANCERY_GRPC_PORT']}`);
      expect(env['CHANCERY_DATA_DIR']).toBe(`/f/${name}`);
    }
  });

  test('the gateway knows every validator', () => {
    const listeners = plans
      .filter(({ service }) => service === 'validator')
      .map(({ env }) => `127.0.0.1:${env['CHANCERY_HTTPS_PORT']}`);
    const gateway = plans.find(({ name }) => name === 'gateway');
    expect(gateway?.env['CHANCERY_VALIDATOR_HTTPS']?.split(',')).toEqual(listeners);
  });

  test('each has an identity of its own that the issuer knows', () => {
    const ids = plans.map(({ clientId }) => clientId);
    expect(new Set(ids).size).toBe(plans.length);
    for (const { clientId, env } of plans) {
      expect(clientIdsOf(services, count)).toContain(clientId);
      expect(env['SPIFFE_ENDPOINT_SOCKET']).toBe(`unix:/s/${clientId}.sock`);
    }
  });

  test('only components with a database get one, each its own', () => {
    const urls = plans.flatMap(({ env }) => env['DATABASE_URL'] ?? []);
    expect(urls).toEqual([
      'postgres://tenant',
      'postgres://wallet',
      'postgres://register',
      'postgres://blueprint',
      'postgres://credential',
    ]);
  });

  test('everything listens on loopback, and no port is used twice', () => {
    const used = plans.flatMap(({ env }) =>
      Object.entries(env).flatMap(([name, value]) => (name.endsWith('_PORT') ? [value] : [])),
    );
    expect(new Set(used).size).toBe(used.length);
    expect(plans.every(({ env }) => env['CHANCERY_LISTEN_HOST'] === '127.0.0.1')).toBe(true);
  });
});

describe('the starters of local mode', () => {
  test('exist for each service that it runs', () => {
    const names = services.filter(isLocal).map(({ name }) => name);
    expect(Object.keys(starters).toSorted()).toEqual(names.toSorted());
  });

  test('are required by type: a served row of a catalogue without a starter does not compile', () => {
    const row = { purpose: '', principalId: '', scopes: [], calls: {} } as const;
    const catalogue = {
      served: { ...row, status: 'served' },
      planned: { ...row, status: 'planned' },
      elsewhere: { ...row, status: 'served', needs: 'kubernetes' },
    } as const satisfies Catalogue;
    expectTypeOf(localServicesOf<typeof catalogue>)
      .parameter(1)
      .toEqualTypeOf<Readonly<Record<'served', Starter>>>();
  });
});
