import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, openFixture } from './testing/fixture.ts';
import { type Held, Presenter } from './testing/presenter.ts';

const numRuns = process.env['CHANCERY_TEST_LENGTH'] === 'full' ? 5_000 : 150;
const formType = 'application/x-www-form-urlencoded';

/** Mutations of a form: pieces cut out, inserted, repeated, percent signs and separators anywhere. */
const mutation = fc.record({
  from: fc.nat(4_000),
  length: fc.nat(60),
  inserted: fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.constantFrom('%', '%00', '%ff', '&', '=', '&&', '+', '[]', '__proto__=1&', 'state=&', '%u0041', '\0'),
  ),
  type: fc.constantFrom(
    formType,
    formType,
    `${formType};charset=utf-16`,
    'text/plain',
    'application/json',
    '',
  ),
});

function mutated(
  form: string,
  { from, length, inserted }: { from: number; length: number; inserted: string },
) {
  const at = from % (form.length + 1);
  return `${form.slice(0, at)}${inserted}${form.slice(at + length)}`;
}

describe.each(['openid4vc-1.0', 'haip-1.0'] as const)('forms in %s', (profile) => {
  let fixture: Fixture;
  let presenter: Presenter;

  beforeAll(async () => {
    fixture = await openFixture(`credential_forms_${profile.slice(0, 4)}`, { profile });
    presenter = new Presenter(fixture);
  });
  afterAll(() => fixture.close());

  const post = async (url: string, payload: string, type: string) => {
    const headers = { ...(type !== '' && { 'content-type': type }) };
    return fixture.app.inject({ method: 'POST', url, headers, payload: Buffer.from(payload) });
  };
  const written = async () => {
    const counts = [];
    for (const table of ['access_tokens', 'used_values', 'credentials'] as const)
      counts.push((await fixture.db.read.selectFrom(table).selectAll().execute()).length);
    const requests = await fixture.db.read.selectFrom('presentation_requests').select('status').execute();
    return [...counts, requests.filter(({ status }) => status !== 'Pending').length];
  };

  it.each([
    [
      '/token',
      'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Apre-authorized_code&pre-authorized_code=abc',
    ],
    [
      '/par',
      'response_type=code&client_id=w&redirect_uri=https%3A%2F%2Fw.test&code_challenge=x&issuer_state=y',
    ],
    ['/authorize', 'request_uri=urn%3Ax&client_id=w&code=123456'],
  ])('%s gives nothing for any form, and writes nothing', async (url, form) => {
    const before = await written();
    await fc.assert(
      fc.asyncProperty(mutation, async (change) => {
        const answer = await post(url, mutated(form, change), change.type);
        // The page of an approval says what is wrong; it leads nowhere.
        if (answer.statusCode === 200) expect(answer.headers['content-type']).toMatch(/^text\/html/);
        else expect(Math.floor(answer.statusCode / 100)).toBe(4);
      }),
      { numRuns },
    );
    expect(await written()).toEqual(before);
  });

  it('direct-post takes an answer only whole', async () => {
    const held: Held | undefined = profile === 'haip-1.0' ? undefined : await presenter.hold();
    const ask = profile === 'haip-1.0' ? {} : { responseMode: 'direct_post' };
    const { requestId, request } = await presenter.asked(ask);
    const presentation = held === undefined ? 'a~b' : await presenter.present(held, request);
    const vp = JSON.stringify({ credential: [presentation] });
    const form = new URLSearchParams({ vp_token: vp, state: String(request.state) }).toString();
    const before = await written();
    await fc.assert(
      fc.asyncProperty(mutation, async (change) => {
        const changed = mutated(form, change);
        fc.pre(changed !== form);
        const { requestId: id, request: own } = await presenter.asked(ask);
        const answer = await post(
          `/api/v1/verifier/requests/${id}/direct-post`,
          changed.replace(encodeURIComponent(String(request.state)), encodeURIComponent(String(own.state))),
          change.type,
        );
        expect([200, 400, 413, 415]).toContain(answer.statusCode);
        // An answer that was taken is judged: what was changed, or made for another request, is not verified.
        if (answer.statusCode === 200) {
          const { state } = (await presenter.result(id)).json();
          expect(['Failed', 'Pending']).toContain(state);
        }
      }),
      { numRuns },
    );
    expect((await written()).slice(0, 3)).toEqual(before.slice(0, 3));
    expect((await presenter.result(requestId)).json().state).toBe('Pending');
  });
});
