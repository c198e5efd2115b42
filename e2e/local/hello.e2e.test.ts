import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listServices, SERVICES, type ServiceRow } from '#core/identity/services.ts';
import { createLogger } from '#kit/log/log.ts';
import { type Local, startLocal } from '../../components/standalone/local.ts';
import { localServicesOf, starterOf, starters } from '../../components/standalone/starters.ts';
import { openStateDirectory, type StateDirectory } from '../../components/standalone/state/directory.ts';
import { chartServices, renderEntries, withClientIds } from '../../tools/charts/services.ts';
import { findPrograms } from '../../tools/images/catalogue.ts';
import { type Api, createApi } from '../harness/api.ts';
import { signIn } from '../harness/journey.ts';
import { until } from '../harness/wait.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const template = fileURLToPath(new URL('./hello', import.meta.url));

/** Copies the files of the service into a new folder, as a developer writes them; `#kit` and `#core` resolve there. */
function writeService(): string {
  mkdirSync(join(root, 'dist'), { recursive: true });
  const folder = mkdtempSync(join(root, 'dist', 'hello-'));
  cpSync(template, folder, { recursive: true });
  return folder;
}

/** The row of the service in the catalogue. */
const rowOf = (folder: string) =>
  ({
    purpose: 'Greetings of people',
    status: 'served',
    principalId: '00000000-0000-0000-0002-0000000000ff',
    scopes: ['registers:read'],
    stores: true,
    main: relative(root, join(folder, 'main.ts')),
    calls: { tenant: ['https', 'grpc', 'tokens'] },
    routes: [{ path: '/api/greetings/**' }],
  }) as const satisfies ServiceRow;

const catalogueOf = (folder: string) => ({ ...SERVICES, hello: rowOf(folder) }) as const;

const starterIn = (folder: string) =>
  starterOf(async () => {
    const config: typeof import('./hello/config.ts') = await import(join(folder, 'config.ts'));
    const compose: typeof import('./hello/compose.ts') = await import(join(folder, 'compose.ts'));
    return { schema: config.helloSettings, create: compose.createHello };
  });

describe('a service that is one folder and one row of the catalogue', () => {
  let folder = '';

  beforeAll(() => {
    folder = writeService();
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  describe('in local mode', () => {
    let directory: StateDirectory;
    let local: Local;
    let api: Api;
    let token = '';

    beforeAll(async () => {
      directory = openStateDirectory(join(folder, 'state'));
      const log = createLogger({ service: 'hello-journey', level: 'silent' });
      local = await startLocal({
        options: {
          dataDir: directory.root,
          port: 0,
          processes: false,
          validators: 1,
          again: undefined,
          recover: undefined,
        },
        directory,
        external: {},
        services: localServicesOf(catalogueOf(folder), { ...starters, hello: starterIn(folder) }),
        log,
        logOf: () => log,
        onChange: () => undefined,
        recover: async () => '',
      });
      api = createApi(local.state.gatewayUrl);
      token = (await signIn(api, local.state)).access_token;
    });

    afterAll(async () => {
      await local.stop();
      rmSync(directory.sockets, { recursive: true, force: true });
    });

    test('answers a person through the gateway from its own table', async () => {
      await api.expect(404, 'GET', '/api/greetings/mine', { token });
      await api.expect(204, 'PUT', '/api/greetings/mine', { token, json: { greeting: 'Good morning' } });
      const { body } = await api.expect(200, 'GET', '/api/greetings/mine', { token });
      expect(body).toEqual({ greeting: 'Good morning' });
    });

    test('refuses a caller without a token, and an invalid body', async () => {
      await api.expect(401, 'GET', '/api/greetings/mine');
      const answer = await api.expect(400, 'PUT', '/api/greetings/mine', { token, json: { greeting: '' } });
      expect(answer.body).toMatchObject({ code: expect.any(String) });
    });

    test('is in the health and in the API reference of the installation', async () => {
      const health = await api.expect(200, 'GET', '/api/health');
      expect(health.body).toMatchObject({ services: { hello: { status: 'healthy' } } });
      // 503 until the gateway has fetched the document of each service
      const document = await until('the API reference', 30_000, async () => {
        const answer = await api.expect([200, 503], 'GET', '/openapi.json');
        return answer.status === 200 ? answer : undefined;
      });
      expect(document.body).toMatchObject({ paths: { '/api/greetings/mine': { get: {}, put: {} } } });
    });

    test('has a principal with the scopes of its row, and gets service tokens', async () => {
      const secret = readFileSync(join(local.state.serviceSecretsDir, 'service-hello'), 'utf8');
      const answer = await fetch(local.state.internalTokenUrl, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: 'service-hello',
          client_secret: secret,
        }),
      });
      expect(await answer.json()).toMatchObject({ token_type: 'Bearer', scope: 'registers:read' });
    });
  });

  describe('in the chart', () => {
    const services = () => listServices(catalogueOf(folder));

    test('is reached by the gateway, and reaches the listeners that it calls', () => {
      const { edges, stores } = chartServices(services());
      expect(edges['service-hello']).toEqual({ 7443: ['service-gateway'] });
      for (const port of ['7443', '7000', '8443']) {
        expect(edges['service-tenant']?.[port], port).toContain('service-hello');
        expect(chartServices().edges['service-tenant']?.[port], port).not.toContain('service-hello');
      }
      expect(stores).toContain('service-hello');
    });

    test('has an identity of the issuer and of SPIRE', () => {
      expect(chartServices(services()).clientIds).toContain('service-hello');
      const { entries } = JSON.parse(renderEntries(services())) as { entries: { spiffe_id: string }[] };
      const ids = entries.map(({ spiffe_id }) => spiffe_id);
      expect(ids).toContain('spiffe://acme.chancery.local/service/service-hello');
      const spiffeIds = readFileSync(join(root, 'spire/cluster-spiffe-ids.yaml'), 'utf8');
      expect(withClientIds(spiffeIds, services())).toMatch(/values:\s*\[[^\]]*\bservice-hello\b/);
    });

    test('has an image', () => {
      const programs = findPrograms(root, services());
      expect(programs).toContainEqual({
        name: 'hello',
        description: 'Greetings of people',
        main: relative(root, join(folder, 'main.ts')),
      });
    });
  });
});
