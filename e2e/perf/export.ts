import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { Pool } from 'undici';
import { presign, storedIn } from './load.ts';
import { batchesByHttp, packedPerSecond } from './ours.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const perRound = 8_000;
const rounds = 3;
/** Batches in flight. */
const inFlight = 4;
const chancery = fileURLToPath(new URL('../../components/cli/main.ts', import.meta.url));

/** Transactions per second of a whole register, from the request until `chancery verify` has verified all of it. */
async function exportAndVerify(stage: Stage, pool: Pool): Promise<number> {
  const transactions = await storedIn(stage, stage.registerId);
  const startedAt = performance.now();
  const answer = await pool.request({
    path: `/api/registers/${stage.registerId}/export`,
    method: 'GET',
    headers: { authorization: `Bearer ${stage.token}` },
  });
  if (answer.statusCode !== 200) throw new Error(`the export answered ${answer.statusCode}`);
  const program = spawn(process.execPath, [chancery, 'verify', '-'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [said] = await Promise.all([text(program.stdout), pipeline(answer.body, program.stdin)]);
  const seconds = (performance.now() - startedAt) / 1000;
  if (!said.includes(`, ${transactions} transactions`)) throw new Error(`the export is another one: ${said}`);
  return transactions / seconds;
}

/** Export and verification of everything that the packed path has stored, beside the packed path of the same round. */
export async function exporting(stage: Stage): Promise<readonly Row[]> {
  const register = stage.pool(stage.addressOf('register', 'HTTPS'), 1);
  const validator = stage.pool(stage.validatorUrls()[0] ?? '', inFlight);
  const send = batchesByHttp(stage, [validator], inFlight);
  const figures = { ours: [] as number[], raw: [] as number[] };
  try {
    for (let n = 0; n <= rounds; n++) {
      const bodies = presign(stage.registerId, perRound);
      const stored = await packedPerSecond(stage, bodies, send);
      const exported = await exportAndVerify(stage, register);
      if (n === 0) continue;
      figures.raw.push(stored);
      figures.ours.push(exported);
    }
  } finally {
    await Promise.all([register.close(), validator.close()]);
  }
  return [
    {
      measure: 'export and verify, tx/s, against the packed path',
      ...figures,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.5 },
    },
  ];
}
