import { setTimeout as rest } from 'node:timers/promises';
import { forward } from '../../cluster/forward.ts';
import { until } from '../../harness/wait.ts';
import { readMetrics, sumOf } from '../metrics.ts';
import type { Row } from '../report.ts';
import type { Stage } from './stage.ts';
import { millicores, type Usage, usageOf } from './usage.ts';
import { changedObjects, readVersions, type Writable, writeCalls } from './writes.ts';

const sampleMs = 15_000;
const quietMs = 5_000;
const settleMs = 120_000;

/** Writes up to a moment. */
export interface WriteCounts {
  readonly calls: number;
  readonly versions: ReadonlyMap<string, string>;
}

/** `counted` are the kinds whose count is read from the API server; all that the operator may change when absent. */
export async function readWritten(
  { namespace, kinds, metrics }: Stage,
  counted: readonly Writable[] = kinds,
): Promise<WriteCounts> {
  const versions = await readVersions(namespace, kinds);
  return { calls: writeCalls(await metrics(), counted), versions };
}

/** Rows of the writes between two moments: by the API server's count, and by the changed objects. */
export function writeRows(when: string, before: WriteCounts, after: WriteCounts): readonly Row[] {
  const changed = changedObjects(before.versions, after.versions);
  const named = changed.length === 0 ? '' : ` (${changed.slice(0, 3).join('; ')})`;
  const none = { raw: [], bound: { kind: 'absolute', atMost: 0 } } as const;
  return [
    {
      measure: `${when}: writes but the lease, as the API server counts`,
      ours: [after.calls - before.calls],
      unit: 'writes',
      ...none,
    },
    { measure: `${when}: objects that changed${named}`, ours: [changed.length], unit: 'objects', ...none },
  ];
}

/** Waits until nothing is written for some seconds. */
export async function quiet(stage: Stage): Promise<void> {
  await until('nothing is written any more', settleMs, async () => {
    const before = writeCalls(await stage.metrics(), stage.kinds);
    await rest(quietMs);
    return writeCalls(await stage.metrics(), stage.kinds) === before ? true : undefined;
  });
}

/** Calls, writes, memory and CPU without any change. */
export async function steadyState(stage: Stage, minutes: number): Promise<readonly Row[]> {
  await quiet(stage);
  const place = await stage.operator();
  const door = await forward(stage.namespace, 'service-operator', 9090);
  const own = () => readMetrics(`http://${door.address}`);
  const written = await readWritten(stage);
  const usages: Usage[] = [await usageOf(stage.api, place)];
  const startedAt = performance.now();
  const counted = { server: await stage.meter.calls(), own: ownCalls(await own()) };
  const leftMs = () => startedAt + minutes * 60_000 - performance.now();
  while (leftMs() > 0) {
    await rest(Math.min(sampleMs, leftMs()));
    usages.push(await usageOf(stage.api, place));
  }
  const passed = (performance.now() - startedAt) / 60_000;
  const said = await own();
  const calls = { server: await stage.meter.calls(), own: ownCalls(said) };
  const after = await readWritten(stage);
  await door.stop();
  return [
    ...writeRows('steady', written, after),
    {
      measure: 'steady: API calls, as the API server counts',
      ours: [(calls.server - counted.server) / passed],
      raw: [],
      unit: '/min',
      bound: { kind: 'absolute', atMost: 35 },
    },
    {
      measure: 'steady: the same, as the operator counts',
      ours: [(calls.own - counted.own) / passed],
      raw: [],
      unit: '/min',
      bound: { kind: 'printed' },
    },
    ...usageRows(usages),
    {
      measure: 'steady: resident memory, as the operator says',
      ours: [sumOf(said, /^process_resident_memory_bytes$/) / 2 ** 20],
      raw: [],
      unit: 'MiB',
      bound: { kind: 'absolute', atMost: 220 },
    },
  ];
}

const ownCalls = (text: string): number => sumOf(text, /^rest_client_requests_total$/);

function usageRows(usages: readonly Usage[]): readonly Row[] {
  const [first, last] = [usages[0], usages.at(-1)];
  return [
    {
      measure: 'steady: memory of the operator, the most',
      ours: usages.map(({ memoryMiB }) => memoryMiB),
      raw: [],
      unit: 'MiB',
      bound: { kind: 'worst', atMost: 220 },
    },
    {
      measure: 'steady: CPU of the operator',
      ours: first === undefined || last === undefined ? [] : [millicores(first, last)],
      raw: [],
      unit: 'millicores',
      bound: { kind: 'absolute', atMost: 20 },
    },
  ];
}
