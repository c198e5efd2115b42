import { roomPlans, startRoomHub } from './deliveries.ts';
import { barePlans, type ClientPlan, connectCrowd } from './hubs/crowd.ts';
import { heapAtRest } from './inspector.ts';
import { memoryMiB } from './process-cpu.ts';
import { type RawProgram, startRaw } from './raw/child.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const rounds = 3;
const connections = 2_000;
/** Connections before the first measurement, so that what all connections share is there. */
const early = 100;
const kibibytes = 1024;

interface Held {
  /** What V8 holds after a full collection, heap and buffers, KiB. */
  readonly heap: number;
  readonly process: number;
}

async function held(pid: number): Promise<Held> {
  const { usedMiB, outsideMiB } = await heapAtRest(pid);
  return { heap: (usedMiB + outsideMiB) * kibibytes, process: memoryMiB(pid) * kibibytes };
}

/** Memory that each idle connection adds to a program. */
async function ofConnection(program: RawProgram, plans: readonly ClientPlan[]): Promise<Held> {
  const port = Number(program.said);
  const first = await connectCrowd(port, plans.slice(0, early));
  const before = await held(program.pid);
  const others = await connectCrowd(port, plans.slice(early));
  const after = await held(program.pid);
  await Promise.all([first.stop(), others.stop()]);
  await program.stop();
  return {
    heap: (after.heap - before.heap) / connections,
    process: (after.process - before.process) / connections,
  };
}

/** Memory of an idle connection of a hub, which is in two groups, beside that of bare `ws`. */
export async function connectionMemory(stage: Stage): Promise<readonly Row[]> {
  const figures = { ours: [] as Held[], raw: [] as Held[] };
  for (let n = 0; n < rounds; n++) {
    const bare = await startRaw(new URL('./raw/broadcast.ts', import.meta.url), {});
    figures.raw.push(await ofConnection(bare, barePlans(early + connections)));
    const hub = await startRoomHub(stage.rawDatabaseUrl);
    figures.ours.push(await ofConnection(hub, roomPlans(early + connections)));
  }
  return [
    {
      measure: 'memory of an idle connection, heap and buffers',
      ours: figures.ours.map(({ heap }) => heap),
      raw: figures.raw.map(({ heap }) => heap),
      unit: 'KiB',
      bound: { kind: 'multiple', atMost: 1.6 },
    },
    {
      measure: 'memory of an idle connection, process',
      ours: figures.ours.map(({ process }) => process),
      raw: figures.raw.map(({ process }) => process),
      unit: 'KiB',
      bound: { kind: 'printed' },
    },
  ];
}
