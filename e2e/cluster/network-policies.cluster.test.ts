import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { removeNamespace } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, namespace } from './installed.ts';
import { eventually, kubectl } from './kubectl.ts';
import { dial } from './probe.ts';

const elsewhere = `chancery-stranger-${process.pid}`;
const at = (name: string, port: number): string => `${name}.${namespace}.svc.cluster.local:${port}`;

const internal = [
  at('service-tenant', 7443),
  at('service-tenant', 7000),
  at('service-tenant', 8443),
  at('service-tenant', 8081),
  at('service-tenant', 9090),
  at('service-wallet', 7443),
  at('service-wallet', 7000),
  at('service-register', 7443),
  at('service-register', 7000),
  at('service-blueprint', 7443),
  at('service-blueprint', 7000),
  at('service-credential', 7443),
  at('service-credential', 7000),
  at('service-operator', 9090),
  at('service-gateway', 9090),
  at('svid-issuer', 8443),
  at('postgres', 5432),
  at('nats', 4222),
];
const gateway = at('service-gateway', 8080);
const silent = Object.fromEntries(internal.map((target) => [target, 'silent']));

beforeAll(async () => {
  await ensureInstalled();
  await kubectl('create', 'namespace', elsewhere);
  await eventually(() => kubectl('get', 'serviceaccount', 'default', '-n', elsewhere));
}, 240_000);

afterAll(() => removeNamespace(elsewhere));

explainFailures(namespace);

test.each([
  ['of another namespace', elsewhere],
  ['of the same namespace', namespace],
])('a stranger pod %s reaches nothing but the gateway', async (_, where) => {
  const found = await dial({ namespace: where, name: 'stranger' }, [...internal, gateway]);
  expect(found).toEqual({ ...silent, [gateway]: 'open' });
});

test('each service reaches the services that it calls, and no others', async () => {
  const as = (clientId: string) => ({
    namespace,
    name: `as-${clientId}`,
    labels: { 'app.kubernetes.io/part-of': 'chancery', 'chancery.dev/client-id': clientId },
  });
  const calls: Readonly<Record<string, readonly string[]>> = {
    'service-gateway': [
      at('service-tenant', 7443),
      at('service-wallet', 7443),
      at('service-register', 7443),
      at('service-blueprint', 7443),
      at('service-credential', 7443),
      at('svid-issuer', 8443),
    ],
    'service-wallet': [
      at('service-tenant', 7443),
      at('service-tenant', 7000),
      at('service-tenant', 8443),
      at('service-register', 7000),
      at('service-blueprint', 7000),
      at('service-credential', 7000),
      at('service-wallet', 7443),
      at('svid-issuer', 8443),
      at('postgres', 5432),
      at('nats', 4222),
    ],
    'service-credential': [
      at('service-tenant', 7443),
      at('service-tenant', 7000),
      at('service-tenant', 8443),
      at('service-wallet', 7443),
      at('service-wallet', 7000),
      at('service-register', 7443),
      at('svid-issuer', 8443),
      at('postgres', 5432),
      at('nats', 4222),
    ],
  };
  for (const [clientId, open] of Object.entries(calls)) {
    const expected = {
      ...silent,
      [gateway]: 'silent',
      ...Object.fromEntries(open.map((target) => [target, 'open'])),
    };
    expect(await dial(as(clientId), [...internal, gateway]), clientId).toEqual(expected);
  }
});

test('the internal listeners cannot be reached from outside', async () => {
  const ip = await kubectl(
    'get',
    'pods',
    '-n',
    namespace,
    '-l',
    'chancery.dev/client-id=service-tenant',
    '-o',
    'jsonpath={.items[0].status.podIP}',
  );
  const found = await Promise.all([7443, 7000, 8443, 8081].map((port) => tryConnect(ip, port)));
  expect(found).toEqual(['silent', 'silent', 'silent', 'silent']);
});

function tryConnect(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_500 });
    const end = (said: string) => {
      socket.destroy();
      resolve(said);
    };
    socket.once('connect', () => end('open'));
    socket.once('timeout', () => end('silent'));
    socket.once('error', (error) => end('code' in error ? String(error.code) : error.message));
  });
}
