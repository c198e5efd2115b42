import { afterAll, beforeAll, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { InboxEntry } from '../../clients/inboxes.ts';
import { startPermits } from '../../testing/permits.ts';
import { notifyPage } from './notify.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;
let permits: Permits;
const written: InboxEntry[] = [];
let failures = 0;

beforeAll(async () => {
  permits = await startPermits('blueprint_notices');
});
afterAll(() => permits.world.stop());

function deps() {
  const { db, definitions } = permits.world;
  return {
    db,
    findBlueprint: async (registerId: string) => {
      const pin = permits.world.registers.get(registerId)?.publications[0]?.publicationTxId ?? '';
      return (await definitions.find(registerId, pin))?.blueprint;
    },
    owners: { findOwners: async () => new Map([[permits.wallets.board, 'dan']]) },
    inboxes: {
      write: async (entry: InboxEntry) => {
        if (failures > 0) {
          failures -= 1;
          throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away');
        }
        written.push(entry);
      },
    },
  };
}

it('a person whose wallet an action waits for has one entry, also when the inbox was away', async () => {
  permits.reset();
  await permits.prepare(false);
  expect(await notifyPage(deps())).toBe(true);
  written.length = 0;
  await permits.apply();
  await permits.world.runner.settle();
  failures = 1;
  // The log shows an event when no transaction of the server is older than its own, also of other databases.
  const failure = async () => String(await notifyPage(deps()).catch((error) => error));
  await expect.poll(failure, { timeout: 10_000 }).toContain('away');
  expect(await notifyPage(deps())).toBe(true);
  expect(written).toMatchObject([
    {
      platformUserId: 'dan',
      category: 'Action',
      severity: 'ActionRequired',
      correlationKey: `workflow:${permits.at.instanceId}`,
      title: 'Safety review: Temporary site permit',
      detailHref: `/api/instances/${permits.at.instanceId}/actions/1`,
      sourceEventId: expect.stringMatching(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
    },
  ]);
  await notifyPage(deps());
  expect(written).toHaveLength(1);
});
