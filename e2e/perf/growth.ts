import { createRegister, waitOnline } from '../harness/journey.ts';
import { inParallel, until } from '../harness/wait.ts';
import { cpuSeconds } from './process-cpu.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';
import { presign } from './throughput.ts';

const small = 1_000;
const large = 100_000;
const measured = 2_000;
const chunk = 4_000;
const inFlight = 128;

/**
 * Row 7: CPU of register and validator for one appended transaction, in a register of 10^5 against one of 10^3
 * transactions; measured alternately, so that the machine's drift meets both.
 */
export async function growth(stage: Stage, validatorUrl: string): Promise<Row> {
  const pool = stage.pool(validatorUrl, inFlight);
  const { api, token, owner } = stage;
  const stored = async (registerId: string): Promise<number> => {
    const answer = await api.expect(200, 'GET', `/api/registers/${registerId}/transactions?pageSize=1`, {
      token,
    });
    return (answer.body as { totalCount: number }).totalCount;
  };
  const append = async (registerId: string, count: number): Promise<void> => {
    const before = await stored(registerId);
    await inParallel(presign(registerId, count), inFlight, async (body) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      const answer = await pool.request({
        path: '/api/v1/transactions/validate',
        method: 'POST',
        headers,
        body,
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(`append answered ${answer.statusCode}: ${text}`);
    });
    await until('appended', 120_000, async () =>
      (await stored(registerId)) >= before + count ? true : undefined,
    );
  };
  const cost = async (registerId: string): Promise<number> => {
    const pids = [stage.pidOf('validator-0'), stage.pidOf('register')];
    const before = pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
    await append(registerId, measured);
    return ((pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0) - before) / measured) * 1e6;
  };
  const make = async (title: string, size: number): Promise<string> => {
    const registerId = await createRegister(api, token, title, owner);
    await waitOnline(api, token, registerId);
    for (let done = 0; done < size; done += chunk) await append(registerId, Math.min(chunk, size - done));
    return registerId;
  };
  const grown = await make('Grown register', large);
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (let n = 0; n < 4; n++) {
    const fresh = await make(`Small register ${n}`, small);
    figures.raw.push(await cost(fresh));
    figures.ours.push(await cost(grown));
  }
  await pool.close();
  return {
    measure: 'CPU per append at 10^5 against 10^3',
    ...figures,
    unit: 'us',
    bound: { kind: 'multiple', atMost: 1.25 },
  };
}
