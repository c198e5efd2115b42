import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { namespace } from './installed.ts';
import { type ApiServer, kubectl } from './kubectl.ts';
import { useMainSet } from './main-set.ts';
import { changed, within } from './running-set.ts';

/** Two controllers on one field (operator scenario 18): somebody keeps writing what the operator owns. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** How long the fight is watched after it was given up. */
const watchMs = full ? 120_000 : 15_000;
const rival = 'capacity-bot';
const wanted = 1;
const theirs = 2;

const main = useMainSet();

const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/main`;
const budget = z.object({ spec: z.object({ maxUnavailable: z.number() }) });
const readBudget = async (server: ApiServer) =>
  budget.parse((await server.request('GET', path)).body).spec.maxUnavailable;

/** A controller that wants another value, and looks ten times a second. */
class Rival {
  readonly #work: Promise<void>;
  #isStopped = false;
  /** How often it had to write: the answers of the operator, and once more. */
  writes = 0;

  constructor(server: ApiServer) {
    this.#work = this.#fight(server);
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#work;
  }

  async #fight(server: ApiServer): Promise<void> {
    const patch = { spec: { maxUnavailable: theirs } };
    while (!this.#isStopped) {
      if ((await readBudget(server)) !== theirs) {
        await server.request('PATCH', `${path}?fieldManager=${rival}`, patch, 'application/merge-patch+json');
        this.writes += 1;
      }
      await pause(100);
    }
  }
}

let bot: Rival | undefined;
afterAll(() => bot?.stop());

const ready = async () => main.set.condition('Ready');

test('is given up within a minute, names the other side in condition and event, and is won when that ends', async () => {
  const { server, set } = main;
  const pods = await set.uids();
  bot = new Rival(server);
  const openedMs = await within('the fight to be given up', 60_000, async () => {
    return (await ready())?.reason === 'ReconcileThrottled';
  });
  const message = `PodDisruptionBudget ${namespace}/main: fields of the operator are changed repeatedly by ${rival}; stop that writer`;
  expect(await ready()).toMatchObject({ status: 'False', message });

  const before = { writes: bot.writes, ready: await ready() };
  const endsAt = performance.now() + watchMs;
  const said = new Set<string | undefined>();
  while (performance.now() < endsAt) {
    said.add((await ready())?.message);
    await pause(200);
  }
  // it is said once, and the child gets an answer now and then
  expect([...said]).toEqual([message]);
  expect(await ready()).toEqual(before.ready);
  const answers = bot.writes - before.writes;
  expect(answers).toBeLessThanOrEqual(Math.ceil(watchMs / 10_000));
  expect(answers).toBeGreaterThan(0);

  // what others do not fight over is kept as it should be
  await kubectl('-n', namespace, 'delete', 'networkpolicy/main');
  await within('the other child to be back', 15_000, async () => {
    const { status } = await server.request(
      'GET',
      `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/main`,
    );
    return status === 200;
  });

  await bot.stop();
  const format = 'jsonpath={range .items[*]}{.reason}: {.message}{.note}{"\\n"}{end}';
  const events = (await kubectl('-n', namespace, 'get', 'events', '-o', format)).split('\n');
  expect(events.filter((line) => line === `ReconcileThrottled: ${message}`)).toHaveLength(1);
  const wonMs = await within('the field to be put back', 20_000, async () => {
    return (await readBudget(server)) === wanted;
  });
  const endedMs = await within('the set to be ready', 60_000, async () => (await ready())?.status === 'True');
  process.stdout.write(
    `given up after ${Math.round(openedMs)} ms, ${answers} answers in ${watchMs / 1_000} s, put back after ${Math.round(wonMs)} ms, ready ${Math.round(endedMs)} ms later\n`,
  );
  expect(changed(pods, await set.uids())).toEqual([]);
}, 360_000);
