import type { Row } from '../report.ts';
import { edit } from './edits.ts';
import { isSettled } from './follow.ts';
import { population, tenant, tenants } from './population.ts';
import type { Stage } from './stage.ts';

const deadlineMs = 180_000;
/** Shares of the burst after which an older object is edited. */
const moments = [0.25, 0.5, 0.75];

/** Creates all Tenants at once; an older one is edited while the burst is reconciled. */
export async function burst(stage: Stage): Promise<readonly Row[]> {
  const early = tenant('early');
  const { name } = early.metadata;
  const { objects } = stage.tenants;
  await stage.make([early]);
  const settled = () => [...objects.values()].filter(isSettled).length - 1;
  await stage.tenants.until('the first Tenant is Ready', deadlineMs, () => settled() === 0);
  const startedAt = performance.now();
  const made = stage.make(tenants());
  const edits: number[] = [];
  for (const share of moments) {
    const count = share * population.tenants;
    await stage.tenants.until(`${count} Tenants are Ready`, deadlineMs, () => settled() >= count);
    edits.push(await edit(stage, stage.tenants, name, { displayName: `Edited at ${count}` }));
  }
  await made;
  await stage.tenants.until('all Tenants are Ready', deadlineMs, () => settled() === population.tenants);
  const tookMs = performance.now() - startedAt;
  return [
    {
      measure: `${population.tenants} new Tenants at once to Ready`,
      ours: [tookMs / 1000],
      raw: [],
      unit: 's',
      bound: { kind: 'absolute', atMost: 60 },
    },
    {
      measure: `an edit in the middle of it, the worst of ${moments.length}`,
      ours: edits,
      raw: [],
      unit: 'ms',
      bound: { kind: 'worst', atMost: 1_000 },
    },
  ];
}
