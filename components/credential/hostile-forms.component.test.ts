import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { byteChanges, fuzzing, mutatedJson } from '#core/encoding/testing/mutations.ts';
import { parseCertificate } from '#core/trust/certificate.ts';
import { PRE_AUTHORIZED_GRANT } from './protocol/grants.ts';
import { Attester } from './testing/attester.ts';
import { type Fixture, openFixture } from './testing/fixture.ts';
import { Presenter } from './testing/presenter.ts';
import { configurationOf, TestWallet, walletKey } from './testing/wallet.ts';

vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 60_000 });

const runs = fuzzing(process.env);

type Fields = Readonly<Record<string, string>>;

type Edit = (fields: Fields) => string | Buffer;

const encoded = (fields: Fields) => new URLSearchParams(fields).toString();

/**
 * Changes of a form with fields like those of the example: its structure, or its bytes. A change is drawn before the
 * fields of its request exist, so it is applied to the example's and carried over where a field is unchanged.
 */
function editsOf(example: Fields): fc.Arbitrary<Edit> {
  const structure = mutatedJson(example).map(
    (changed): Edit =>
      (fields) => {
        const entries = typeof changed === 'object' && changed !== null ? Object.entries(changed) : [];
        return new URLSearchParams(
          entries.map(([name, value]) => [
            name,
            value === example[name] ? (fields[name] ?? '') : textOf(value),
          ]),
        ).toString();
      },
  );
  return fc.oneof(
    structure,
    byteChanges.map(
      (change): Edit =>
        (fields) =>
          change(Buffer.from(encoded(fields))),
    ),
  );
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

const mediaTypes = fc.oneof(
  { weight: 9, arbitrary: fc.constant('application/x-www-form-urlencoded') },
  fc.constantFrom('application/x-www-form-urlencoded; charset=utf-16', 'application/json', 'text/plain'),
);

/** Rows of all tables as text: what is written of a request. */
async function stored({ db }: Fixture): Promise<string> {
  const { rows } = await db.pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'credential' order by 1`,
  );
  const texts = rows.map(async ({ name }) => {
    const found = await db.pool.query(
      `select coalesce(string_agg(t::text, ' ' order by t::text), '') as text from credential.${name} t`,
    );
    return `${name} ${found.rows[0].text}`;
  });
  return (await Promise.all(texts)).join('\n');
}

interface Endpoint {
  readonly url: string;
  readonly fields: Fields;
  readonly headers: Fields;
  /** Judges the answer to a form that was not refused. */
  accepted(form: URLSearchParams): Promise<void> | void;
}

/** Posts changed forms; what is refused is refused in the format of the protocol, and nothing of it is written. */
async function storm(fixture: Fixture, example: Fields, open: () => Promise<Endpoint>): Promise<void> {
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(editsOf(example), mediaTypes, async (edit, type) => {
      const { url, fields, headers, accepted } = await open();
      const payload = edit(fields);
      const before = await stored(fixture);
      const sent = { 'content-type': type, ...headers };
      const { statusCode, body } = await fixture.app.inject({ method: 'POST', url, headers: sent, payload });
      if (statusCode < 400) {
        await accepted(new URLSearchParams(payload.toString()));
        return;
      }
      refused += 1;
      expect(statusCode).toBeLessThan(500);
      expect(body).toMatch(/^\{"error":"[a-z_]+","error_description":"/);
      expect(await stored(fixture)).toBe(before);
    }),
    runs(150),
  );
  expect(refused).toBeGreaterThan(20);
}

/** Whether a form has the parameters of another. */
const hasAll = (form: URLSearchParams, fields: Fields) =>
  Object.entries(fields).every(([name, value]) => form.get(name) === value);

describe('changed forms in the profile openid4vc-1.0', () => {
  let fixture: Fixture;
  let presenter: Presenter;

  beforeAll(async () => {
    fixture = await openFixture('credential_forms');
    presenter = new Presenter(fixture);
  });
  afterAll(() => fixture.close());

  test('/token', async () => {
    const fieldsOf = (code: string) => ({ grant_type: PRE_AUTHORIZED_GRANT, 'pre-authorized_code': code });
    await storm(fixture, fieldsOf('x'.repeat(43)), async () => {
      const fields = fieldsOf(String((await presenter.wallet.offer()).json().preAuthorizedCode));
      const accepted = (form: URLSearchParams) => {
        expect(hasAll(form, fields)).toBe(true);
      };
      return { url: '/token', headers: {}, fields, accepted };
    });
  });

  test('/direct-post', async () => {
    const held = await presenter.hold();
    const example = { vp_token: '{"credential":["eyJh.eyJh.AAAA~WyJh~eyJh.eyJh.AAAA"]}', state: 's' };
    const states = new Set<string>();
    await storm(fixture, example, async () => {
      const { requestId, request } = await presenter.asked();
      const presentation = await presenter.present(held, request);
      const fields = { vp_token: JSON.stringify({ credential: [presentation] }), state: request.state };
      const accepted = async (form: URLSearchParams) => {
        const { state } = (await presenter.result(requestId)).json();
        states.add(state);
        // An answer that is a form of the protocol is taken; only the presentation as it was signed verifies.
        expect(state).toMatch(/^(?:Verified|Failed)$/);
        if (state !== 'Verified') return;
        expect(JSON.parse(form.get('vp_token') ?? '')).toEqual({ credential: [presentation] });
        expect(form.get('state')).toBe(request.state);
      };
      return { url: `/api/v1/verifier/requests/${requestId}/direct-post`, headers: {}, fields, accepted };
    });
    expect([...states].sort()).toEqual(['Failed', 'Verified']);
  });
});

describe('changed forms in the profile haip-1.0', () => {
  let fixture: Fixture;

  afterAll(() => fixture.close());

  test('/par', async () => {
    const attester = await Attester.open();
    const authorities = [parseCertificate(new X509Certificate(attester.certificate.rootPem).raw)];
    const served = { profile: 'haip-1.0', authorities, requiresKeyAttestation: true } as const;
    fixture = await openFixture('credential_forms_haip', served);
    const wallet = new TestWallet(fixture);
    const instance = await walletKey();
    const offer = (await wallet.offer()).json();
    const required = {
      response_type: 'code',
      client_id: 'https://wallet.test',
      issuer_state: String(offer.credentialOffer.grants.authorization_code.issuer_state),
      code_challenge_method: 'S256',
      scope: configurationOf(offer),
    };
    const code_challenge = createHash('sha256').update(randomBytes(32)).digest('base64url');
    const fields = { ...required, redirect_uri: 'eudi-wallet://back?x=1', code_challenge };
    await storm(fixture, fields, async () => {
      const headers = await attester.headers(instance, wallet.nowSeconds);
      // Where the person returns to, and the challenge, are the client's own.
      const accepted = (form: URLSearchParams) => {
        const { client_id, ...others } = required;
        expect(form.get('client_id') ?? client_id).toBe(client_id);
        expect(hasAll(form, others)).toBe(true);
      };
      return { url: '/par', fields, headers, accepted };
    });
  });
});
