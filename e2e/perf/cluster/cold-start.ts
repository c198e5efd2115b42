import { forward } from '../../cluster/forward.ts';
import { kubectl } from '../../cluster/kubectl.ts';
import { until } from '../../harness/wait.ts';
import { readMetrics, samplesOf, sumOf } from '../metrics.ts';
import type { Row } from '../report.ts';
import { operatorLabels, type Stage } from './stage.ts';
import { quiet, readWritten, writeRows } from './steady.ts';

const deadlineMs = 120_000;

/** Whether every object was reconciled since the process began, and none waits; throws when one failed. */
export function isAllReconciled(text: string, wanted: Readonly<Record<string, number>>): boolean {
  if (sumOf(text, /^controller_runtime_reconcile_errors_total$/) > 0)
    throw new Error('a reconcile of the cold start failed');
  const open = sumOf(text, /^workqueue_depth$/) + sumOf(text, /^controller_runtime_active_workers$/);
  const done = samplesOf(text, 'controller_runtime_reconcile_total');
  return Object.entries(wanted).every(([controller, count]) => {
    const own = done.filter(({ labels }) => labels['controller'] === controller);
    return open === 0 && own.reduce((sum, { value }) => sum + value, 0) >= count;
  });
}

/**
 * Stops the operator and starts another process that knows only the state of the cluster. The time begins with the
 * request to start its pod, so scheduling and the container are included. It ends by the process's own metrics, because
 * nothing is written when all is reconciled.
 */
export async function coldStart(stage: Stage): Promise<readonly Row[]> {
  const { namespace, tenants, registers, validatorSets } = stage;
  const there = ['-n', namespace];
  await quiet(stage);
  // The operator's own pod changes, and the scheduler writes an event for it.
  const counted = stage.kinds.filter(({ resource }) => !['pods', 'events'].includes(resource));
  const before = await readWritten(stage, counted);
  await kubectl('scale', ...there, 'deployment/service-operator', '--replicas=0');
  await kubectl('wait', ...there, '--for=delete', 'pod', '-l', operatorLabels, '--timeout=60s');
  const startedAt = performance.now();
  await kubectl('scale', ...there, 'deployment/service-operator', '--replicas=1');
  await kubectl('rollout', 'status', ...there, 'deployment/service-operator', '--timeout=60s');
  const door = await forward(namespace, 'service-operator', 9090);
  const wanted = {
    tenant: tenants.objects.size,
    register: registers.objects.size,
    validatorset: validatorSets.objects.size,
  };
  await until('everything is reconciled', deadlineMs, async () => {
    const text = await readMetrics(`http://${door.address}`);
    return isAllReconciled(text, wanted) ? true : undefined;
  });
  const tookMs = performance.now() - startedAt;
  await door.stop();
  await quiet(stage);
  const after = await readWritten(stage, counted);
  return [
    {
      measure: 'cold start of the operator to all reconciled',
      ours: [tookMs / 1000],
      raw: [],
      unit: 's',
      bound: { kind: 'absolute', atMost: 15 },
    },
    ...writeRows('cold start', before, after),
  ];
}
