import { timed } from '../latency.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from './lengths.ts';
import { applying, openPermits } from './permits.ts';
import { openRaw, Product, type Side } from './sides.ts';
import { byTurns } from './turns.ts';

async function applyOnce(side: Side): Promise<number> {
  const [instanceId = ''] = await side.start(1);
  return timed(() => side.applyFor(instanceId, applying));
}

/** One application at a time on an idle system, until the safety board has the signal of its action. */
export async function toNextParty(stage: Stage, { samples }: Lengths): Promise<Row> {
  const ours = await Product.open(stage, await openPermits(stage, { devMode: true }));
  const raw = await openRaw(stage, { name: 'workflow_latency', isEncrypted: false });
  const course = { rounds: samples / 2, warmUp: samples / 2 };
  try {
    const pairs = await byTurns(
      course,
      () => applyOnce(ours),
      () => applyOnce(raw),
    );
    return {
      measure: "action submitted until the next party's is there, idle, p50",
      ...pairs,
      unit: 'ms',
      bound: { kind: 'multiple', atMost: 2 },
    };
  } finally {
    await Promise.all([ours.close(), raw.close()]);
  }
}
