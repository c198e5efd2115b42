import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { charts, removeNamespace } from './chart.ts';
import { kubectl, must, run } from './kubectl.ts';

const namespace = `chancery-optional-${process.pid}`;
const gatewayApi = 'sigs.k8s.io/gateway-api@v1.4.0';

const set = [
  'admin.existingSecret=admin',
  'tenant.protectionKey.existingSecret=protection',
  'wallet.keyEncryptionKey.existingSecret=kek',
  'database.tenant.existingSecret=db-tenant',
  'database.wallet.existingSecret=db-wallet',
  'database.register.existingSecret=db-register',
  'nats.existingSecret=nats',
  'gateway.autoscaling.enabled=true',
  'tenant.autoscaling.enabled=true',
  'tenant.autoscaling.maxReplicas=3',
  'httpRoute.enabled=true',
  'httpRoute.parentRefs[0].name=public',
  'httpRoute.hostnames={chancery.example.org}',
  'ingress.enabled=true',
  'ingress.host=chancery.example.org',
  'ingress.tlsSecret=public-tls',
  'ingress.className=public',
].flatMap((one) => ['--set', one]);

beforeAll(() => kubectl('create', 'namespace', namespace));
afterAll(() => removeNamespace(namespace));

/** What one template of the chart renders with production values. */
const render = (template: string): Promise<string> =>
  must('helm', [
    'template',
    'acme',
    charts('chancery'),
    '-n',
    namespace,
    ...set,
    '--show-only',
    `templates/${template}`,
  ]);

const dryRun = (input: string) =>
  run('kubectl', ['apply', '--dry-run=server', '--validate=strict', '-n', namespace, '-f', '-'], { input });

test.each([
  'gateway.yaml',
  'tenant.yaml',
  'wallet.yaml',
  'register.yaml',
  'operator.yaml',
  'operator-rbac.yaml',
  'installation.yaml',
  'network-policies.yaml',
  'migrations.yaml',
  'uninstall-guard.yaml',
])('the API server takes %s as production values render it', async (template) => {
  const { code, err } = await dryRun(await render(template));
  expect([code, err]).toEqual([0, '']);
});

test('the API server takes the Ingress and the HTTPRoute', async ({ skip }) => {
  const { code: absent, out } = await run('go', ['mod', 'download', '-json', gatewayApi], {
    timeoutMs: 120_000,
  });
  if (absent !== 0) skip('the definitions of the Gateway API come as a Go module, and there is no Go here');
  const { Dir: folder } = JSON.parse(out) as { Dir: string };
  const definition = join(folder, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml');
  await kubectl('apply', '--server-side', '-f', definition);
  await kubectl(
    'wait',
    '--for=condition=Established',
    '--timeout=60s',
    'crd/httproutes.gateway.networking.k8s.io',
  );
  const { code, err } = await dryRun(await render('ingress.yaml'));
  expect([code, err]).toEqual([0, '']);
  await kubectl('delete', 'crd', 'httproutes.gateway.networking.k8s.io');
});
