import { afterEach, expect, it } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { createDraftJudge, type DraftJudge } from './pool.ts';

const definition = { id: 'any', title: 'Any' };
const { log } = testRuntime('service-blueprint');
let judge: DraftJudge | undefined;
afterEach(() => judge?.close());

/** Code of a thread, as a module. */
const threadOf = (code: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort } from 'node:worker_threads'; ${code}`)}`,
  );

const hanging = threadOf(`
  parentPort.on('message', (text) => {
    while (text.includes('hang')) {}
    parentPort.postMessage(JSON.stringify({ findings: [], execDefHash: 'fine' }));
  });
  parentPort.postMessage('ready');`);

it('finds a definition too complex that does not end, and judges the next one', async () => {
  judge = createDraftJudge({ workers: 1, log, credentials: false, budgetMs: 100, workerUrl: hanging });
  const [slow, next] = await Promise.all([
    judge.judge({ ...definition, title: 'hang' }),
    judge.judge(definition),
  ]);
  expect(slow.findings).toMatchObject([{ severity: 'Error', code: 'VAL_BP_TOO_COMPLEX', location: '' }]);
  expect(next.execDefHash).toBe('fine');
  const question = { actionId: 0, data: { text: 'hang' }, ask: 'try' } as const;
  await expect(judge.answer(definition, question)).rejects.toMatchObject({ code: 'DRAFT_TOO_COMPLEX' });
});

it('refuses more definitions than may wait', async () => {
  judge = createDraftJudge({ workers: 1, log, credentials: false, mostWaiting: 2, workerUrl: hanging });
  const all = await Promise.allSettled(Array.from({ length: 4 }, () => judge?.judge(definition)));
  const refused = all.filter(({ status }) => status === 'rejected');
  expect(refused).toMatchObject([
    { reason: { code: 'DRAFT_JUDGING_BUSY' } },
    { reason: { code: 'DRAFT_JUDGING_BUSY' } },
  ]);
});

it('reports a thread that fails, and judges with another one', async () => {
  const failing = threadOf(`
    parentPort.on('message', (text) => {
      if (text.includes('fail')) throw new Error('broken');
      parentPort.postMessage(JSON.stringify({ findings: [], execDefHash: 'fine' }));
    });
    parentPort.postMessage('ready');`);
  judge = createDraftJudge({ workers: 1, log, credentials: false, workerUrl: failing });
  await expect(judge.judge({ ...definition, title: 'fail' })).rejects.toMatchObject({ kind: 'internal' });
  expect((await judge.judge(definition)).execDefHash).toBe('fine');
});

it('refuses what waits when it is closed', async () => {
  judge = createDraftJudge({ workers: 1, log, credentials: false, budgetMs: 60_000, workerUrl: hanging });
  const waiting = judge.judge({ ...definition, title: 'hang' });
  const refused = expect(waiting).rejects.toMatchObject({ code: 'DRAFT_JUDGING_BUSY' });
  await judge.close();
  await refused;
  await expect(judge.judge(definition)).rejects.toMatchObject({ code: 'DRAFT_JUDGING_BUSY' });
});
