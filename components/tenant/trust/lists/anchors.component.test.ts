import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bearer, passTime, startReplica } from '../../tenant.fixture.ts';
import { formBody, outcome, startListTenant, stopReplica } from './tenant-lists.fixture.ts';

const base = '/api/v1/trust/trustlists';
const mebibyte = 1_048_576;

let the: Awaited<ReturnType<typeof startListTenant>>;

beforeAll(async () => {
  the = await startListTenant('tenant_trust_anchors');
});
afterAll(() => the.stop());
beforeEach(() => the.clear());

const audited = () =>
  the.tenant.db.read
    .selectFrom('audit_events')
    .select(['event_type', 'success', 'details', 'organization_id'])
    .where('event_type', 'in', ['TrustListImported', 'TrustListRemoved'])
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();

describe('anchors and their freshness', () => {
  it('are those of the active version; stale ones are marked, and in strict mode refused', async () => {
    const soon = new Date(the.tenant.clock.nowMs() + 60_000).toISOString();
    await the.upload(the.listOf({ nextUpdate: soon }), the.pinned);
    const fresh = (await the.get('/eu-pid/anchors', the.machine)).json();
    expect(fresh).toEqual({
      trustListId: 'eu-pid',
      sequenceNumber: 1,
      freshness: 'Fresh',
      nextUpdate: soon,
      roots: the.anchors.map(({ base64 }) => base64),
    });
    await passTime(the.tenant, 60_000);
    expect((await the.get('/eu-pid/anchors', the.machine)).json()).toEqual({ ...fresh, freshness: 'Stale' });
    expect((await the.get('')).json().trustLists).toMatchObject([{ freshness: 'Stale' }]);
    const env = { ...the.tenant.files.env, Trust__TrustListStrictFreshness: 'true' };
    const strict = await startReplica({ ...the.tenant.files, env, remove: async () => undefined });
    try {
      await passTime(strict, 120_000);
      expect(outcome(await the.get('/eu-pid/anchors', the.machine, strict))).toEqual([
        409,
        'TRUSTLIST_STALE',
      ]);
      expect((await the.get('/eu-pid', the.admin, strict)).json()).toMatchObject({ freshness: 'Stale' });
    } finally {
      await stopReplica(strict);
    }
  });

  it('do not exist for a list that is not loaded', async () => {
    expect(outcome(await the.get('/eu-pid/anchors', the.machine))).toEqual([404, 'TRUSTLIST_UNAVAILABLE']);
    expect(outcome(await the.get('/EU_PID/anchors', the.machine))).toEqual([404, 'NOT_FOUND']);
  });
});

describe('removal', () => {
  it('removes all versions; the next import is a first one', async () => {
    for (const sequence of [1, 2]) await the.upload(the.listOf({ sequence }), the.pinned);
    const remove = () =>
      the.tenant.app.inject({ method: 'DELETE', url: `${base}/eu-pid`, headers: bearer(the.admin) });
    expect((await remove()).statusCode).toBe(204);
    expect(await audited()).toMatchObject({
      event_type: 'TrustListRemoved',
      success: true,
      details: { trustListId: 'eu-pid', versions: 2 },
    });
    for (const table of ['trust_list_snapshots', 'trust_list_anchors'] as const) {
      expect(await the.tenant.db.read.selectFrom(table).selectAll().execute()).toEqual([]);
    }
    expect(outcome(await remove())).toEqual([404, 'TRUSTLIST_UNAVAILABLE']);
    expect(outcome(await the.upload(the.listOf()))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
  });
});

describe('callers', () => {
  it.each([
    ['GET', '', 'admin'],
    ['GET', '/eu-pid', 'admin'],
    ['DELETE', '/eu-pid', 'admin'],
    ['POST', '/import', 'admin'],
    ['GET', '/eu-pid/anchors', 'service'],
  ] as const)('%s %s is for %s alone', async (method, path, kind) => {
    const url = `${base}${path}`;
    expect((await the.tenant.app.inject({ method, url })).statusCode).toBe(401);
    const refused = kind === 'admin' ? [the.boss, the.machine] : [the.boss, the.admin];
    for (const token of refused) {
      expect((await the.tenant.app.inject({ method, url, headers: bearer(token) })).statusCode).toBe(403);
    }
  });

  it('are refused before their upload is read', async () => {
    const form = formBody({ trustListId: 'eu-pid', ...the.pinned }, Buffer.alloc(11 * mebibyte));
    expect((await the.sendForm(form, the.tenant, the.boss)).statusCode).toBe(403);
  });
});
