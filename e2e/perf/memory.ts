import { heapAtRest } from './inspector.ts';
import { post, presign, sendAll, spread, storedIn, validatePath } from './load.ts';
import { memoryMiB } from './process-cpu.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const connections = 64;
const chunk = 4_000;

/** Number of transactions from which a validator's caches are full, and number up to which it is measured. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Memory of one validator at rest: heap and buffers after a full collection, and the whole process. */
interface Memory {
  readonly heapMiB: number;
  readonly processMiB: number;
}

/**
 * Memory of the validators while transactions are sealed. Heap and buffers after a forced collection have a bound. The
 * memory that the process holds depends on when its allocator returns pages, so it is only printed.
 */
export async function memory(stage: Stage, stretch: Stretch): Promise<readonly Row[]> {
  const names = stage.system.state.validators.map(({ validatorId }) => validatorId);
  await sealUntil(stage, stretch.from);
  const before = await measure(stage, names);
  await sealUntil(stage, stretch.to);
  const after = await measure(stage, names);
  const measure0 = `memory of a validator, ${stretch.to / 1000}k against ${stretch.from / 1000}k sealed`;
  return [
    {
      measure: `${measure0}, heap and buffers`,
      ours: after.map(({ heapMiB }) => heapMiB),
      raw: before.map(({ heapMiB }) => heapMiB),
      unit: 'MiB',
      bound: { kind: 'multiple', atMost: 1.05 },
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

/** Measures each validator in turn, with nothing in flight. */
async function measure(stage: Stage, names: readonly string[]): Promise<readonly Memory[]> {
  const found: Memory[] = [];
  for (const name of names) {
    const pid = stage.pidOf(name);
    const { usedMiB, outsideMiB } = await heapAtRest(pid);
    found.push({ heapMiB: usedMiB + outsideMiB, processMiB: memoryMiB(pid) });
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
