import { inParallel } from '../../harness/wait.ts';
import { timed } from '../latency.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from './lengths.ts';
import { applying, openPermits, rejecting } from './permits.ts';
import { openRaw, Product, type Side } from './sides.ts';
import { byTurns } from './turns.ts';

const steps = 20;
const inFlight = 8;

/** An instance that goes back and forth: applications and rejections, all of which the applicant reads. */
async function grow(side: Side): Promise<string> {
  const [instanceId = ''] = await side.start(1);
  for (let n = 0; n < steps; n++) await side.take(instanceId, n % 2 === 0 ? applying : rejecting);
  return instanceId;
}

/** What the applicant reads of an instance with twenty steps, beside the same with one unwrapping a step by node:crypto. */
export async function disclosing(stage: Stage, lengths: Lengths): Promise<Row> {
  const ours = await Product.open(stage, await openPermits(stage, { devMode: false }));
  const raw = await openRaw(stage, { name: 'workflow_disclosures', isEncrypted: true });
  const perSecond = async (side: Side, instanceId: string): Promise<number> => {
    const read = async (): Promise<void> => {
      const { length } = await side.disclosures(instanceId);
      if (length !== steps) throw new Error(`${length} of ${steps} steps were disclosed`);
    };
    const ms = await timed(() => inParallel(Array.from({ length: lengths.disclosures }), inFlight, read));
    return lengths.disclosures / (ms / 1000);
  };
  try {
    const [own, bare] = [await grow(ours), await grow(raw)];
    const pairs = await byTurns(
      lengths,
      () => perSecond(ours, own),
      () => perSecond(raw, bare),
    );
    return {
      measure: `disclosures of ${steps} steps, ${inFlight} in flight`,
      ...pairs,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.5 },
    };
  } finally {
    await Promise.all([ours.close(), raw.close()]);
  }
}
