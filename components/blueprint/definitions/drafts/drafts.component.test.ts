import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  organizationId,
  otherOrganizationId,
  sitePermit,
  startWorld,
  type World,
} from '../../testing/world.ts';

const base = '/api/blueprints';
const one = `${base}/site-permit-approval`;

describe('drafts', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld('blueprint_drafts');
  });
  afterAll(() => world.stop());

  it('are stored, read, changed by revision, listed and deleted', async () => {
    const made = await world.call('POST', base, { body: sitePermit() });
    expect([made.status, made.headers.location, made.headers.etag]).toEqual([201, one, '"1"']);
    expect(made.body).toMatchObject({ id: 'site-permit-approval', version: 1, organizationId });
    const read = await world.call('GET', one);
    expect([read.status, read.body]).toEqual([200, made.body]);

    // What was read may be sent back: the members of the service are not stored.
    const changed = { ...read.body, title: 'Temporary site permit (2026)' };
    const put = await world.call('PUT', one, { body: changed, headers: { 'if-match': '"1"' } });
    expect([put.status, put.headers.etag, put.body.version]).toEqual([200, '"2"', 2]);
    const stale = await world.call('PUT', one, { body: changed, headers: { 'if-match': '"1"' } });
    expect([stale.status, stale.body.code]).toEqual([412, 'REVISION_MISMATCH']);
    const weak = await world.call('DELETE', one, { headers: { 'if-match': 'W/"2"' } });
    expect(weak.status).toBe(412);
    const stored = await world.db.read.selectFrom('drafts').select('definition').executeTakeFirstOrThrow();
    expect(JSON.parse(stored.definition)).toEqual({
      ...sitePermit(),
      title: changed.title,
      version: undefined,
    });

    const listed = await world.call('GET', `${base}?search=SITE%20permit`);
    expect(listed.body).toMatchObject({ totalCount: 1, items: [{ status: 'Draft', actionCount: 4 }] });
    // Signs of patterns are plain characters.
    expect((await world.call('GET', `${base}?search=%25`)).body.totalCount).toBe(0);
    expect((await world.call('GET', `${base}?page=7`)).body).toMatchObject({ items: [], totalCount: 1 });

    expect((await world.call('DELETE', one, { headers: { 'if-match': '"2"' } })).status).toBe(204);
    expect((await world.call('GET', one)).status).toBe(404);
    expect((await world.call('DELETE', one)).status).toBe(404);
    expect((await world.call('GET', base)).body.totalCount).toBe(0);
    const archived = await world.call('GET', `${base}?status=Archived`);
    expect(archived.body.items).toMatchObject([{ id: 'site-permit-approval', status: 'Archived' }]);
    expect((await world.call('POST', base, { body: sitePermit() })).status).toBe(201);
  });

  it('belong to one organisation: for another one the id is free and the draft not found', async () => {
    const body = { ...sitePermit(), id: 'ours-alone' };
    await world.call('POST', base, { body });
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      const request = { token: 'stranger', ...(method === 'PUT' && { body }) };
      expect((await world.call(method, `${base}/ours-alone`, request)).status).toBe(404);
    }
    expect(
      (await world.call('POST', `${base}/ours-alone/validate`, { token: 'stranger', body: {} })).status,
    ).toBe(404);
    const theirs = await world.call('POST', base, { token: 'stranger', body });
    expect([theirs.status, theirs.body.organizationId]).toEqual([201, otherOrganizationId]);
    const again = await world.call('POST', base, { body });
    expect([again.status, again.body.code]).toEqual([409, 'BLUEPRINT_ID_TAKEN']);
    // A service sees both, and no one of them under the id that they share.
    const all = await world.call('GET', `${base}?search=ours-alone`, { token: 'service' });
    expect(all.body.totalCount).toBe(2);
    expect((await world.call('GET', `${base}/ours-alone`, { token: 'service' })).status).toBe(404);
    const own = await world.call('POST', base, { token: 'service', body: sitePermit() });
    expect([own.status, own.body.code]).toEqual([403, 'ORGANIZATION_REQUIRED']);
    expect((await world.call('GET', base, { token: 'user' })).status).toBe(403);
  });

  it('are refused when they cannot be read', async () => {
    const post = (text: string) => world.call('POST', base, { text });
    const duplicate = await post('{"title":"One","title":"Two"}');
    expect([duplicate.status, duplicate.body.error]).toEqual([
      400,
      expect.stringMatching(/title|twice|duplicate/i),
    ]);
    expect((await post('{"title":"One","__proto__":{}}')).status).toBe(400);
    expect((await post(`{"title":"Deep","x":${'['.repeat(80)}${']'.repeat(80)}}`)).status).toBe(400);
    expect((await post('{"id":"UPPER","title":"One"}')).status).toBe(400);
    expect((await post('{"title":"One\\u202eTwo"}')).status).toBe(400);
    expect((await post('[]')).status).toBe(400);
    const large = { ...sitePermit(), id: 'large', 'x-large': 'y'.repeat(524_288) };
    const refused = await world.call('POST', base, { body: large });
    expect([refused.status, refused.body.code]).toEqual([413, 'DEFINITION_TOO_LARGE']);
    const moved = await world.call('PUT', one, { body: { ...sitePermit(), id: 'other-id' } });
    expect([moved.status, moved.body.code]).toEqual([400, 'BLUEPRINT_ID_FIXED']);
  });

  it('get an id where none is given, once for a repeated request', async () => {
    const { id: _, ...body } = sitePermit();
    const headers = { 'idempotency-key': 'draft-1' };
    const first = await world.call('POST', base, { body, headers });
    const second = await world.call('POST', base, { body, headers });
    expect(first.body.id).toMatch(/^[0-9a-f-]{36}$/);
    expect([second.status, second.body]).toEqual([201, first.body]);
    const other = await world.call('POST', base, { body: { ...body, title: 'Another' }, headers });
    expect([other.status, other.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('keep the later of two changes that name one revision', async () => {
    const id = 'raced';
    await world.call('POST', base, { body: { ...sitePermit(), id } });
    const changes = ['First', 'Second', 'Third'].map((title) =>
      world.call('PUT', `${base}/${id}`, {
        body: { ...sitePermit(), id, title },
        headers: { 'if-match': '"1"' },
      }),
    );
    const statuses = (await Promise.all(changes)).map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 412, 412]);
    expect((await world.call('GET', `${base}/${id}`)).body.version).toBe(2);
  });

  it('cannot claim a source: metadata of lineage is dropped', async () => {
    const metadata = { category: 'permits', 'x-source-register': 'f'.repeat(32) };
    const { body } = await world.call('POST', base, { body: { ...sitePermit(), id: 'claimant', metadata } });
    expect(body.metadata).toEqual({ category: 'permits' });
  });
});
