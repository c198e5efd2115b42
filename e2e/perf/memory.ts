import { heapAtRest } from './inspector.ts';
import { post, presign, sendAll, spread, storedIn, validatePath } from './load.ts';
import { readMetrics, sumOf } from './metrics.ts';
import { memoryMiB } from './process-cpu.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const connections = 64;
const chunk = 4_000;
const mib = 2 ** 20;

/** Number of transactions from which a validator's caches are full, and number up to which it is measured. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/**
 * Memory of one validator at rest: heap and buffers after a full collection, of these the filters of sealed keys, and the
 * whole process.
 */
interface Memory {
  readonly heapMiB: number;
  readonly filtersMiB: number;
  readonly processMiB: number;
}

/**
 * Memory of the validators while transactions are sealed. The filters of sealed keys grow with the ledger and have a
 * bound for each transaction; the rest of heap and buffers after a forced collection may not grow. The memory that the
 * process holds depends on when its allocator returns pages, so it is only printed.
 */
export async function memory(stage: Stage, stretch: Stretch): Promise<readonly Row[]> {
  const { validators } = stage.system.state;
  await sealUntil(stage, stretch.from);
  const before = await measure(stage, validators);
  await sealUntil(stage, stretch.to);
  const after = await measure(stage, validators);
  const measure0 = `memory of a validator, ${stretch.to / 1000}k against ${stretch.from / 1000}k sealed`;
  return [
    {
      measure: `${measure0}, heap and buffers without filters`,
      ours: after.map(withoutFilters),
      raw: before.map(withoutFilters),
      unit: 'MiB',
      bound: { kind: 'multiple', atMost: 1.05 },
    },
    {
      measure: 'filters of sealed keys, added by each sealed transaction',
      ours: after.map(({ filtersMiB }, place) => addedBytes(filtersMiB, before[place]?.filtersMiB, stretch)),
      raw: [],
      unit: 'bytes',
      bound: { kind: 'absolute', atMost: 6 },
    },
    {
      measure: `${measure0}, process`,
      ours: after.map(({ processMiB }) => processMiB),
      raw: before.map(({ processMiB }) => processMiB),
      unit: 'MiB',
      bound: { kind: 'printed' },
    },
  ];
}

function addedBytes(afterMiB: number, beforeMiB = 0, { from, to }: Stretch): number {
  return ((afterMiB - beforeMiB) * mib) / (to - from);
}

function withoutFilters({ heapMiB, filtersMiB }: Memory): number {
  return heapMiB - filtersMiB;
}

/** Measures each validator in turn, with nothing in flight. */
async function measure(
  stage: Stage,
  validators: Stage['system']['state']['validators'],
): Promise<readonly Memory[]> {
  const found: Memory[] = [];
  for (const { validatorId, ops } of validators) {
    const pid = stage.pidOf(validatorId);
    const { usedMiB, outsideMiB } = await heapAtRest(pid);
    const filtersMiB = sumOf(await readMetrics(`http://${ops}`), /_key_filter_bytes$/) / mib;
    found.push({ heapMiB: usedMiB + outsideMiB, filtersMiB, processMiB: memoryMiB(pid) });
  }
  return found;
}

async function sealUntil(stage: Stage, goal: number): Promise<void> {
  const pools = stage.validatorUrls().map((url) => stage.pool(url, connections / 4));
  for (;;) {
    const token = await stage.freshToken();
    const stored = await storedIn({ ...stage, token }, stage.registerId);
    if (stored >= goal) break;
    const loaded = {
      connections,
      send: (body: string, place: number) => post(spread(pools, place), validatePath, token, body),
      stored: () => storedIn({ ...stage, token }, stage.registerId),
    };
    await sendAll(loaded, presign(stage.registerId, Math.min(chunk, goal - stored)));
  }
  await Promise.all(pools.map((pool) => pool.close()));
}
