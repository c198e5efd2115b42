import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { namespace } from './installed.ts';
import { type ApiServer, kubectl } from './kubectl.ts';
import { useMainSet } from './main-set.ts';
import { changed, within } from './running-set.ts';

/** Two controllers on one field: another client keeps writing a field of the operator. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** How long the conflict is observed after it is throttled. */
const watchMs = full ? 120_000 : 15_000;
const rival = 'capacity-bot';
const desired = 1;
const theirs = 2;

const main = useMainSet();

const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/main`;
const budget = z.object({ spec: z.object({ maxUnavailable: z.number() }) });
const readBudget = async (server: ApiServer) =>
  budget.parse((await server.request('GET', path)).body).spec.maxUnavailable;

/** A controller with another desired value, which reads ten times per second. */
class Rival {
  readonly #work: Promise<void>;
  #isStopped = false;
  /** Number of its writes: the operator's overwrites plus one. */
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

test('an ownership conflict is throttled within a minute, names the manager in condition and event, and ends with it', async () => {
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
  const messages = new Set<string | undefined>();
  while (performance.now() < endsAt) {
    messages.add((await ready())?.message);
    await pause(200);
  }
  // the condition is stable, and the child is overwritten now and then
  expect([...messages]).toEqual([message]);
  expect(await ready()).toEqual(before.ready);
  const answers = bot.writes - before.writes;
  expect(answers).toBeLessThanOrEqual(Math.ceil(watchMs / 10_000));
  expect(answers).toBeGreaterThan(0);

  // uncontested fields are still restored
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
  const throttled = async () => {
    const events = (await kubectl('-n', namespace, 'get', 'events', '-o', format)).split('\n');
    return events.filter((line) => line === `ReconcileThrottled: ${message}`).length;
  };
  // an event is written after its condition
  await within('the event', 20_000, async () => (await throttled()) > 0);
  expect(await throttled()).toBe(1);
  const wonMs = await within('the field to be put back', 20_000, async () => {
    return (await readBudget(server)) === desired;
  });
  const endedMs = await within('the set to be ready', 60_000, async () => (await ready())?.status === 'True');
  process.stdout.write(
    `given up after ${Math.round(openedMs)} ms, ${answers} answers in ${watchMs / 1_000} s, put back after ${Math.round(wonMs)} ms, ready ${Math.round(endedMs)} ms later\n`,
  );
  expect(changed(pods, await set.uids())).toEqual([]);
}, 360_000);
