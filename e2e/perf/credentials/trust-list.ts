import { openPauses } from '../inspector.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { makeLists } from './signed-list.ts';

const listBytes = 2.4 * 1024 * 1024;

/** Imports of a large trust list: the longest pause of the tenant's event loop, and the time of the import. */
export async function importing(stage: Stage, { rounds }: Lengths): Promise<readonly Row[]> {
  const lists = await makeLists(listBytes);
  const token = await stage.freshToken();
  const url = `${stage.system.state.gatewayUrl}/api/v1/trust/trustlists/import`;
  const pauses = await openPauses(stage.pidOf('tenant'));
  const longest: Awaited<ReturnType<typeof pauses.longest>>[] = [];
  const seconds: number[] = [];
  try {
    for (let sequence = 0; sequence <= rounds; sequence += 1) {
      const body = new FormData();
      body.set('trustListId', 'bench');
      body.set('expectedSignerSha256', lists.signer);
      body.set('file', new Blob([new Uint8Array(lists.version(sequence + 1))]), 'list.xml');
      await pauses.reset();
      const begun = performance.now();
      const answer = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body,
      });
      if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
      // The first import compiles what reads lists.
      if (sequence === 0) continue;
      seconds.push((performance.now() - begun) / 1000);
      longest.push(await pauses.longest());
    }
  } finally {
    await pauses.close();
  }
  return [
    {
      measure: 'import of a trust list of 2.4 MB: longest pause of the tenant',
      ours: longest.map(({ wallMs }) => wallMs),
      raw: [],
      unit: 'ms',
      bound: { kind: 'worst', atMost: 50 },
    },
    {
      measure: 'CPU of its thread in that pause',
      ours: longest.map(({ cpuMs }) => cpuMs),
      raw: [],
      unit: 'ms',
      bound: { kind: 'printed' },
    },
    { measure: 'the import', ours: seconds, raw: [], unit: 's', bound: { kind: 'printed' } },
  ];
}
