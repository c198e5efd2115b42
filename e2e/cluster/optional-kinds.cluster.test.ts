import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { charts, installKinds, removeNamespace } from './chart.ts';
import { eventually, kubectl, must, run } from './kubectl.ts';

const namespace = `chancery-optional-${process.pid}`;
const gatewayApi = 'sigs.k8s.io/gateway-api@v1.4.0';
const prometheusOperator = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';
/** The PodMonitor of a ValidatorSet where the kind is served. */
const podMonitor = join(
  fileURLToPath(import.meta.url),
  '../../../operator/plan/validator-set/render/golden/pod-monitor.yaml',
);

const set = [
  'admin.existingSecret=admin',
  'tenant.protectionKey.existingSecret=protection',
  'wallet.keyEncryptionKey.existingSecret=kek',
  'blueprint.operationsKey.existingSecret=operations',
  'credential.verifierCertificate.existingSecret=verifier',
  'database.tenant.existingSecret=db-tenant',
  'database.wallet.existingSecret=db-wallet',
  'database.register.existingSecret=db-register',
  'database.blueprint.existingSecret=db-blueprint',
  'database.credential.existingSecret=db-credential',
  'nats.existingSecret=nats',
  'gateway.autoscaling.enabled=true',
  'tenant.autoscaling.enabled=true',
  'tenant.autoscaling.maxReplicas=3',
  'bootstrap.enabled=true',
  'httpRoute.enabled=true',
  'httpRoute.parentRefs[0].name=public',
  'httpRoute.hostnames={chancery.example.org}',
  'metrics.serviceMonitor.enabled=true',
  'metrics.serviceMonitor.labels.release=p8s',
  'ingress.enabled=true',
  'ingress.host=chancery.example.org',
  'ingress.tlsSecret=public-tls',
  'ingress.className=public',
].flatMap((one) => ['--set', one]);

beforeAll(async () => {
  await installKinds();
  await kubectl('create', 'namespace', namespace);
});
afterAll(() => removeNamespace(namespace));

/** Output of one template of the chart with production values. */
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
  'blueprint.yaml',
  'credential.yaml',
  'operator.yaml',
  'operator-rbac.yaml',
  'installation.yaml',
  'network-policies.yaml',
  'migrations.yaml',
  'uninstall-guard.yaml',
  'bootstrap.yaml',
])('the API server takes %s as production values render it', async (template) => {
  const { code, err } = await dryRun(await render(template));
  expect([code, err]).toEqual([0, '']);
});

/** Folder of a Go module with published CRDs; undefined without Go. */
async function moduleFolder(module: string): Promise<string | undefined> {
  const { code, out } = await run('go', ['mod', 'download', '-json', module], { timeoutMs: 120_000 });
  return code === 0 ? (JSON.parse(out) as { Dir: string }).Dir : undefined;
}

/** Installs a CRD during a test. */
async function withKind(definition: string, name: string, look: () => Promise<void>): Promise<void> {
  await kubectl('apply', '--server-side', '-f', definition);
  try {
    // a new CRD has no conditions yet
    await eventually(() => kubectl('wait', '--for=condition=Established', '--timeout=5s', `crd/${name}`));
    await look();
  } finally {
    await kubectl('delete', 'crd', name);
  }
}

const noGo = 'the definitions of the kind come as a Go module, and there is no Go here';

test('the API server accepts the Ingress and the HTTPRoute', async ({ skip }) => {
  const folder = await moduleFolder(gatewayApi);
  if (folder === undefined) return skip(noGo);
  const definition = join(folder, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml');
  await withKind(definition, 'httproutes.gateway.networking.k8s.io', async () => {
    const { code, err } = await dryRun(await render('ingress.yaml'));
    expect([code, err]).toEqual([0, '']);
  });
});

test.for([
  ['ServiceMonitor', 'servicemonitors', () => render('service-monitor.yaml')],
  ['PodMonitor', 'podmonitors', () => readFile(podMonitor, 'utf8')],
] as const)('the API server takes the %s', async ([, plural, text], { skip }) => {
  const folder = await moduleFolder(prometheusOperator);
  if (folder === undefined) return skip(noGo);
  const definition = join(folder, `example/prometheus-operator-crd/monitoring.coreos.com_${plural}.yaml`);
  await withKind(definition, `${plural}.monitoring.coreos.com`, async () => {
    const { code, err } = await dryRun((await text()).replace('namespace: acme', `namespace: ${namespace}`));
    expect([code, err]).toEqual([0, '']);
  });
});
