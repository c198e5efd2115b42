import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report } from './diagnosis.ts';
import { must, type ProgramResult, run } from './kubectl.ts';

const root = join(fileURLToPath(import.meta.url), '../../..');

/** Folder of a chart or of the samples, from its name below charts/. */
export const charts = (...path: readonly string[]): string => join(root, 'charts', ...path);

/** A copy of the chart with one edited file; the caller removes it. */
export function editedChart(
  file: string,
  edit: (text: string) => string,
): { readonly folder: string; remove(): void } {
  const parent = mkdtempSync(join(tmpdir(), 'chancery-chart-'));
  const folder = join(parent, 'chancery');
  cpSync(charts('chancery'), folder, { recursive: true });
  writeFileSync(join(folder, file), edit(readFileSync(join(folder, file), 'utf8')));
  return { folder, remove: () => rmSync(parent, { recursive: true }) };
}

/** Address of the ingress controller; INGRESS_ADDRESS overrides it. */
export const ingressAddress = process.env['INGRESS_ADDRESS'] ?? '10.90.0.1';

/** A release of the chart: one installation in its namespace. */
export interface Release {
  readonly name: string;
  readonly namespace: string;
  /** Folder of the chart; the one of this repository when absent. */
  readonly chart?: string;
  /** Additional values for `--set`. */
  readonly set?: readonly string[];
}

const seconds = (ms: number): string => `${Math.ceil(ms / 1000)}s`;

/** Installs the kinds and their policies, once per cluster. */
export async function installKinds(): Promise<void> {
  const args = [
    'upgrade',
    '--install',
    'chancery-crds',
    charts('chancery-crds'),
    '--force-conflicts',
    '--take-ownership',
  ];
  await must('helm', [...args, '--namespace', 'kube-system']);
  const names = ['registers', 'tenants', 'validatorsets'].map((each) => `crd/${each}.chancery.dev`);
  await must('kubectl', ['wait', '--for=condition=Established', '--timeout=60s', ...names]);
}

/** Runs helm upgrade --install with the demo values; also returns a failure. */
export function helmInstall({
  name,
  namespace,
  chart = charts('chancery'),
  set = [],
}: Release): Promise<ProgramResult> {
  const values = ['-f', charts('chancery', 'values-demo.yaml')];
  const more = [`ingress.addresses={${ingressAddress}}`, ...set].flatMap((one) => ['--set', one]);
  const args = ['upgrade', '--install', name, chart, '-n', namespace, '--create-namespace'];
  return run('helm', [...args, ...values, ...more], { timeoutMs: 180_000 });
}

/**
 * Installs or upgrades an installation and waits until it is ready; resolves to the time in milliseconds.
 * @throws Error with the pods, their last log lines and the events when it does not become ready in time
 */
export async function install(release: Release, deadlineMs = 120_000): Promise<number> {
  const startedAt = performance.now();
  const { code, err, out } = await helmInstall(release);
  if (code !== 0) throw new Error(`helm: ${err}${out}`);
  await waitReady(release.namespace, deadlineMs - (performance.now() - startedAt));
  return performance.now() - startedAt;
}

/** Waits until every Deployment and StatefulSet of the chart is rolled out and ready. */
export async function waitReady(namespace: string, deadlineMs: number): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  const found = await must('kubectl', [
    'get',
    'deployments,statefulsets',
    '-n',
    namespace,
    '-l',
    'app.kubernetes.io/part-of=chancery,app.kubernetes.io/managed-by=Helm',
    '-o',
    'name',
  ]);
  for (const workload of found.trim().split('\n')) {
    const left = Math.max(1_000, deadline - performance.now());
    const args = ['rollout', 'status', '-n', namespace, workload, `--timeout=${seconds(left)}`];
    const { code, err } = await run('kubectl', args, { timeoutMs: left + 10_000 });
    if (code !== 0) throw new Error(`${workload} is not ready: ${err}\n${await report(namespace)}`);
  }
}

/** Runs helm uninstall; also returns a failure. */
export function uninstall({ name, namespace }: Release): Promise<ProgramResult> {
  return run('helm', ['uninstall', name, '-n', namespace, '--wait', '--timeout', '90s'], {
    timeoutMs: 120_000,
  });
}

/**
 * Deletes a namespace with its content and waits for its end. Custom resources are deleted first, while their operator
 * still runs.
 */
export async function removeNamespace(namespace: string): Promise<void> {
  const kinds = ['delete', 'registers,validatorsets,tenants', '--all', '-n', namespace];
  await run('kubectl', [...kinds, '--ignore-not-found', '--timeout=60s'], { timeoutMs: 70_000 });
  const args = ['delete', 'namespace', namespace, '--ignore-not-found', '--timeout=90s'];
  await must('kubectl', args, { timeoutMs: 100_000 });
}

/** One value of a Secret. */
export async function readSecret(namespace: string, name: string, key: string): Promise<string> {
  const path = `jsonpath={.data.${key.replaceAll('.', '\\.')}}`;
  const text = await must('kubectl', ['get', 'secret', '-n', namespace, name, '-o', path]);
  return Buffer.from(text, 'base64').toString('utf8');
}
