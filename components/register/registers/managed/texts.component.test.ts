import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Managed, startManaged } from './managed.fixture.ts';

const text = 'Lo\u202eans';

describe('texts of registers of custom resources', () => {
  let managed: Managed;
  beforeAll(async () => {
    managed = await startManaged('managed_texts');
  });
  afterAll(() => managed.register.stop());

  it.each([
    ['title', { title: text }],
    ['description', { description: text }],
    ['metadata', { metadata: { a: text } }],
    ['metadata', { metadata: { [text]: 'a' } }],
  ])('a new register with such a %s is refused, and the refusal names it', async (member, spec) => {
    const before = await managed.count();
    const uid = randomUUID();
    const refused = await managed.put(uid, spec);
    expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(refused.body.detail).toMatch(new RegExp(`^${member}: write .*invisible format characters`));
    expect(await managed.count()).toBe(before);
    expect((await managed.put(uid)).status).toBe(200);
  });

  it('texts that the ledger holds already may be repeated; new ones may not', async () => {
    const { uid, registerId } = await managed.online({ metadata: { a: 'old' } });
    const asSealedBefore = 'old\u202e';
    await managed.register.database.pool.query(
      `update register_rules set rules = replace(rules, '"old"', $2)
       where register_no = (select register_no from registers where register_id = $1)`,
      [registerId, JSON.stringify(asSealedBefore)],
    );
    expect((await managed.put(uid, { title: text, metadata: { a: asSealedBefore } })).status).toBe(200);
    const metadata = { a: asSealedBefore, b: 'new' };
    const change = (body: object) => managed.change(uid, { change: 'metadata', ...body });
    for (const bad of [{ title: text }, { description: text }, { metadata: { ...metadata, b: text } }]) {
      const refused = await change(bad);
      expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_REQUEST']);
    }
    expect((await change({ metadata })).status).toBe(202);
  });
});
