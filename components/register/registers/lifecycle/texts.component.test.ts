import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberDid } from '#core/ledger/did.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

type Json = Record<string, unknown>;

const unreadable = ['\u202e', '\u2069', '\u00ad', '\u200b', '\ufeff', '\u0007', '\r', '\ud800', '\u{e0041}'];

describe('texts of registers that are displayed', () => {
  let register: TestRegister;
  let id: string;
  beforeAll(async () => {
    register = await startTestRegister('register_texts');
    id = await register.createRegister('Loans', { devMode: true });
  });
  afterAll(() => register.stop());

  const initiate = (body: object) =>
    register.call('POST', '/api/registers/initiate', { token: 'admin', body: { title: 'Loans', ...body } });
  const change = (body: object) => register.call('PUT', `/api/registers/${id}`, { token: 'admin', body });

  it.each(unreadable)('no text may contain %j', async (character) => {
    const text = `Lo${character}ans`;
    const bodies = [
      { title: text },
      { description: text },
      { metadata: { a: text } },
      { metadata: { [text]: 'a' } },
    ];
    for (const body of bodies) {
      expect([(await initiate(body)).status, (await change(body)).status]).toEqual([400, 400]);
    }
    const act = (name: string, body: object) =>
      register.call('POST', `/api/validators/${id}/validator-0/${name}`, { token: 'admin', body });
    const acts = [
      await act('suspend', { reason: text }),
      await act('reject', { reason: text }),
      await act('rotate-key', { reason: text }),
      await act('approve', { approvalNotes: text }),
    ];
    expect(acts.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
    expect(register.validators.pooled(id)).toEqual([]);
  });

  it('a title is one line with a visible character; a description may have several lines', async () => {
    for (const title of ['a\nb', 'a\tb', ' ', '\u200d']) expect((await initiate({ title })).status).toBe(400);
    const begun = await initiate({ title: 'می\u200cخواهم 👩\u200d👧', description: 'one\n\ttwo' });
    expect(begun.status).toBe(201);
  });

  it('a definition with such texts is refused, with a finding for every place', async () => {
    const site: Json = JSON.parse(
      readFileSync(new URL('../../../core/blueprint/vectors/site-permit.json', import.meta.url), 'utf8'),
    );
    const [participant, ...participants] = site['participants'] as Json[];
    const [action, ...actions] = site['actions'] as Json[];
    const text = 'Approve\u202e';
    const blueprint = {
      ...site,
      title: text,
      description: 'one\ntwo\u2066',
      metadata: { note: text },
      participants: [{ ...participant, name: text, organisation: 'a\nb' }, ...participants],
      actions: [{ ...action, title: text, description: text }, ...actions],
    };
    const publish = (definition: object) =>
      register.call('POST', `/api/registers/${id}/blueprints/publish`, {
        token: 'blueprint',
        body: {
          blueprintId: 'site-permit-approval',
          blueprint: definition,
          publishedBy: 'did:platform:w:someone',
          callerDid: memberDid(testKey(1).walletAddress),
        },
      });
    const refused = await publish(blueprint);
    expect([refused.status, refused.body.code]).toEqual([422, 'VAL_SCHEMA_001']);
    const places = refused.body.errors.map((one: { field: string }) => one.field).toSorted();
    expect(places).toEqual([
      '/actions/0/description',
      '/actions/0/title',
      '/description',
      '/metadata/note',
      '/participants/0/name',
      '/participants/0/organisation',
      '/title',
    ]);
    expect((await publish({ ...site, description: 'one\n\ttwo' })).status).toBe(200);
  });
});
