import { createRegister, waitOnline } from '../harness/journey.ts';
import { post, presign, sendAll, storedIn, validatePath } from './load.ts';
import { cpuSeconds } from './process-cpu.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const small = 1_000;
const large = 100_000;
const measured = 2_000;
const chunk = 4_000;
const connections = 128;

/**
 * CPU of register and validator for one appended transaction, in a register of 10^5 against one of 10^3 transactions.
 * They are measured alternately, so that a drift of the machine's speed affects both.
 */
export async function growingAppend(stage: Stage): Promise<Row> {
  const pool = stage.pool(stage.addressOf('validator-0', 'HTTPS'), connections);
  const { api, token, owner } = stage;
  const append = async (registerId: string, count: number): Promise<void> => {
    const loaded = {
      connections,
      send: (body: string) => post(pool, validatePath, token, body),
      stored: () => storedIn(stage, registerId),
    };
    await sendAll(loaded, presign(registerId, count));
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
