import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TestIssuer } from '../../testing/credential-issuer.ts';
import { administrator, openReplica, person, startMs } from '../../testing/fixture.ts';
import { citizen, type HolderFixture, openHolderFixture } from '../../testing/holder-fixture.ts';
import { createHttpClient } from '../../testing/http-client.ts';
import { statusJob } from './status.ts';

let fixture: HolderFixture;
let { replica, client, issuer, base, holderJwk, store, walletAddress }: HolderFixture = Object.create(null);
const stored = async (change?: Parameters<TestIssuer['sdJwt']>[1]) =>
  (await store(issuer.sdJwt(holderJwk, change))).body;

beforeAll(async () => {
  fixture = await openHolderFixture('wallet_credentials');
  ({ replica, client, issuer, base, holderJwk, store, walletAddress } = fixture);
});

beforeEach(async () => {
  await replica.db.transact((tx) => sql`DELETE FROM held_credentials`.execute(tx));
  issuer.isAway = false;
  issuer.isTrusted = true;
  issuer.statuses.clear();
});

afterAll(() => fixture.close());

const otherKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

const get = (id: string, who = 'alice') => client.call(who, `GET ${base}/${id}`);

describe('a credential that a wallet received', () => {
  test('is stored, read, exported as it came, and deleted', async () => {
    const text = issuer.sdJwt(holderJwk);
    const { status, body } = await store(text);
    expect([status, body]).toEqual([
      201,
      {
        id: expect.any(String),
        type: issuer.type,
        vct: issuer.type,
        docType: null,
        format: 'sd-jwt-vc',
        issuer: 'https://issuer.test',
        issuerTrusted: true,
        issuerTrustReason: null,
        subjectWallet: walletAddress,
        issuedAt: '2026-11-21T12:00:00.000Z',
        expiresAt: '2026-11-22T12:00:00.000Z',
        storedAt: expect.any(String),
        status: 'Active',
        statusCheckedAt: expect.any(String),
        keyBinding: 'HolderKey',
        usagePolicy: 'Reusable',
        presentationCount: 0,
        displayConfig: null,
        claimNames: expect.arrayContaining(['permitNumber', 'address']),
        claims: { permitNumber: 'P-1', address: { city: 'Ghent' } },
      },
    ]);
    expect((await get(body.id)).body).toEqual(body);
    const { claims: _, ...listed } = body;
    expect((await client.call('alice', `GET ${base}`)).body).toEqual({ credentials: [listed] });
    expect((await client.call('alice', `GET ${base}/${body.id}/export`)).body).toEqual({
      id: body.id,
      format: 'sd-jwt-vc',
      credential: text,
    });
    expect((await client.call('alice', `DELETE ${base}/${body.id}`)).status).toBe(204);
    for (const target of [`GET ${base}/${body.id}`, `DELETE ${base}/${body.id}`, `GET ${base}/none`]) {
      const gone = await client.call('alice', target);
      expect([gone.status, gone.body.code]).toEqual([404, 'CREDENTIAL_NOT_FOUND']);
    }
  });

  test('may be an mdoc', async () => {
    const { status, body } = await store(await issuer.mdoc(holderJwk));
    expect([status, body.format, body.docType, body.vct]).toEqual([201, 'mso_mdoc', 'test.permit.1', null]);
    expect(body.claims).toEqual({ 'test.permit': { permit_number: 'P-1', class: 'B' } });
    expect(body.claimNames.toSorted()).toEqual(['test.permit/class', 'test.permit/permit_number']);
  });

  test('may be bound to a key of the app of the person, also where the wallet derives none', async () => {
    const other = otherKey();
    const { body } = await store(issuer.sdJwt(other));
    expect(body.keyBinding).toBe('OtherKey');
    client.callers.set('rsa', citizen());
    const rsa = await client.made('rsa', 'RSA');
    const path = `/api/v1/wallets/${rsa.walletAddress}/credentials`;
    expect((await store(issuer.sdJwt(other), 'rsa', path)).body.keyBinding).toBe('OtherKey');
  });

  test('is one however often it comes, and is announced once', async () => {
    const text = issuer.sdJwt(holderJwk);
    const before = replica.notifications();
    const answers = await Promise.all(Array.from({ length: 8 }, () => store(text)));
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(7).fill(200), 201]);
    expect(replica.notifications() - before).toBe(1);
    const { rows } = await replica.db.transact((tx) =>
      sql<{ data: object }>`SELECT data FROM outbox WHERE kind = 'CredentialAvailable'
        AND data->>'credentialId' = ${answers[0]?.body.id}`.execute(tx),
    );
    expect(rows).toHaveLength(1);
  });

  test('ends the notice that the person waits for one', async () => {
    await client.call('alice', 'PUT /api/v1/wallet/pending-applications', { body: { label: 'Permit' } });
    await stored();
    expect((await client.call('alice', 'GET /api/v1/wallet/pending-applications')).body).toEqual({
      notice: null,
    });
  });

  test('is sealed: no row has a word of what it says', async () => {
    await stored({ claims: { secret: 'very private words' } });
    const { rows } = await replica.db.transact((tx) =>
      sql<{
        row: string;
      }>`SELECT h::text || encode(h.sealed, 'escape') AS row FROM held_credentials h`.execute(tx),
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]?.row).not.toContain('private words');
  });

  test('cannot take the place of another one', async () => {
    const [first, second] = [await stored(), await stored({ claims: { permitNumber: 'P-2' } })];
    await replica.db.transact((tx) =>
      sql`UPDATE held_credentials h SET sealed = o.sealed FROM held_credentials o
        WHERE h.id = ${first.id} AND o.id = ${second.id}`.execute(tx),
    );
    expect((await get(first.id)).status).toBe(500);
    expect((await get(second.id)).body.claims).toEqual({ permitNumber: 'P-2' });
  });

  test('is read by other replicas, and after the key-encryption key was changed', async () => {
    const { id } = await stored();
    const other = await openReplica({
      url: replica.url,
      kek: Buffer.alloc(32, 9),
      formerKeks: [replica.kek],
      judge: issuer.judge,
    });
    const elsewhere = createHttpClient(other);
    elsewhere.callers.set('alice', client.callers.get('alice') ?? citizen());
    expect((await elsewhere.call('alice', `GET ${base}/${id}`)).body.claims.permitNumber).toBe('P-1');
    await elsewhere.close();
    await other.close();
  });

  test('shows how often its presentation was reported', async () => {
    const { id } = await stored();
    const report = (outcome: string) => ({
      id: randomUUID(),
      credentialId: id,
      disclosedClaims: ['permitNumber'],
      presentedAt: new Date(startMs).toISOString(),
      outcome,
    });
    const entries = ['Presented', 'DeclinedByCitizen', 'Presented'].map(report);
    await client.call('alice', 'POST /api/v1/wallet/presentations/log', { body: { entries } });
    expect((await get(id)).body.presentationCount).toBe(2);
  });
});

describe('a credential is refused', () => {
  const refusalOf = async (credential: string) => {
    const { status, body } = await store(credential);
    return [status, body.code, /\(([A-Z_]+)\)$/.exec(body.detail)?.[1]];
  };
  const seconds = startMs / 1000;

  test.each([
    ['no credential', () => 'no credential', 'FORMAT'],
    ['a text with a tilde', () => 'a~b', 'FORMAT'],
    ['one that has expired', () => issuer.sdJwt(holderJwk, { payload: { exp: seconds - 61 } }), 'EXPIRED'],
    ['one of another type of JWT', () => issuer.sdJwt(holderJwk, { header: { typ: 'JWT' } }), 'FORMAT'],
    ['one that is not signed', () => issuer.sdJwt(holderJwk, { header: { alg: 'none' } }), 'SIGNATURE'],
    [
      'one whose signature is of other bytes',
      () => issuer.sdJwt(holderJwk).replace(/\.[A-Za-z0-9_-]{86}~/, `.${'A'.repeat(86)}~`),
      'SIGNATURE',
    ],
    ['one with a disclosure twice', () => issuer.sdJwt(holderJwk).replace(/~([^~]+)~/, '~$1~$1~'), 'DIGEST'],
    ['one with a foreign disclosure', () => `${issuer.sdJwt(holderJwk)}WyJzIiwiYSIsMV0~`, 'DIGEST'],
  ])('when it is %s', async (_what, make, code) => {
    expect(await refusalOf(make())).toEqual([422, 'CREDENTIAL_INVALID', code]);
  });

  test('when it is bound to no key', async () => {
    for (const payload of [{ cnf: undefined }, { cnf: { jwk: null } }, { cnf: { kid: 'x' } }]) {
      expect(await refusalOf(issuer.sdJwt(holderJwk, { payload }))).toEqual([
        422,
        'CREDENTIAL_INVALID',
        'KB_MISSING',
      ]);
    }
  });

  test.each([
    ['its type', { payload: { vct: 'urn:test:\0' } }],
    ['its type', { payload: { vct: 'urn:test:\u2066' } }],
    ['its issuer', { payload: { iss: 'https://issuer.test/\0' } }],
    ['its issuer', { payload: { iss: 'https://issuer.test\u202e/moc.knab' } }],
    ['the name of a claim', { claims: { 'a\0': 1 } }],
    ['the name of a claim', { claims: { 'a\u200b': 1 } }],
    [
      'the address of its status',
      { payload: { status: { status_list: { idx: 1, uri: 'https://a.test/\0' } } } },
    ],
  ])('when %s has a character that no database stores, or no person reads', async (_what, change) => {
    expect(await refusalOf(issuer.sdJwt(holderJwk, change))).toEqual([422, 'CREDENTIAL_INVALID', 'FORMAT']);
  });

  test('when nobody knows the key of its issuer', async () => {
    const other = new TestIssuer(startMs);
    expect((await refusalOf(other.sdJwt(holderJwk))).slice(0, 2)).toEqual([422, 'CREDENTIAL_ISSUER_UNKNOWN']);
    const header = { x5c: undefined, kid: 'did:web:elsewhere#1' };
    expect((await refusalOf(issuer.sdJwt(holderJwk, { header }))).slice(0, 2)).toEqual([
      422,
      'CREDENTIAL_ISSUER_UNKNOWN',
    ]);
  });

  test('for a wallet that is locked, and while the judge is away', async () => {
    issuer.isAway = true;
    const away = await store(issuer.sdJwt(holderJwk));
    expect([away.status, away.body.code]).toEqual([503, 'CREDENTIALS_UNAVAILABLE']);
    issuer.isAway = false;
    const { id } = await stored();
    const set = (status: string) =>
      client.call('alice', `PATCH /api/v1/wallets/${walletAddress}`, { body: { status } });
    expect((await set('Locked')).status).toBe(200);
    for (const target of [`GET ${base}/${id}`, `GET ${base}/${id}/export`]) {
      expect((await client.call('alice', target)).body.code).toBe('WALLET_LOCKED');
    }
    expect((await store(issuer.sdJwt(holderJwk))).body.code).toBe('WALLET_LOCKED');
    expect((await client.call('alice', `GET ${base}`)).body.credentials).toHaveLength(1);
    expect((await set('Active')).status).toBe(200);
  });

  test('beyond 16 MiB of one wallet', async () => {
    const { id } = await stored();
    await replica.db.transact((tx) =>
      sql`UPDATE held_credentials SET sealed = sealed || decode(repeat('00', 16777216 - 3000), 'hex')
        WHERE id = ${id}`.execute(tx),
    );
    expect((await refusalOf(issuer.sdJwt(holderJwk, { claims: { long: 'a'.repeat(3_000) } })))[1]).toBe(
      'CREDENTIALS_FULL',
    );
  });

  test('beyond 500 of one wallet', async () => {
    const { id } = await stored();
    await replica.db.transact((tx) =>
      sql`INSERT INTO held_credentials SELECT gen_random_uuid(), wallet_id, sha256(n::text::bytea), format, type, issuer,
        issuer_certificates, issuer_key_id, trusted, trust_reason, status, status_uri, status_index, status_checked_at,
        bound_to_holder_key, claim_names, sealed, issued_at, expires_at, stored_at
        FROM held_credentials, generate_series(1, 499) n WHERE id = ${id}`.execute(tx),
    );
    expect((await refusalOf(issuer.sdJwt(holderJwk))).slice(0, 2)).toEqual([409, 'CREDENTIALS_FULL']);
  });
});

describe('what a credential says', () => {
  test('is for its holder: a grant lists credentials and opens none', async () => {
    const { id } = await stored();
    for (const target of [`GET ${base}`, `GET ${base}/${id}`]) {
      expect((await client.call('bob', target)).body.code).toBe('WALLET_NOT_FOUND');
    }
    const bob = client.callers.get('bob')?.platformUserId;
    const grant = { subject: bob, accessRight: 'ReadWrite', allowedDerivationContexts: [] };
    const path = `POST /api/v1/wallets/${walletAddress}/access`;
    expect((await client.call('alice', path, { body: grant })).status).toBe(201);
    const { body } = await get(id, 'bob');
    expect([body.id, body.claims]).toEqual([id, undefined]);
    for (const target of [`GET ${base}/${id}/export`, `DELETE ${base}/${id}`, `POST ${base}/match`]) {
      const requirements = [{ type: issuer.type }];
      const sent = target.endsWith('match') ? { body: { requirements } } : {};
      const refused = await client.call('bob', target, sent);
      expect([refused.status, refused.body.code], target).toEqual([403, 'WALLET_ACCESS_DENIED']);
    }
    expect((await store(issuer.sdJwt(holderJwk), 'bob')).body.code).toBe('WALLET_ACCESS_DENIED');
  });

  test('is for Administrators where the wallet is that of an organisation, and never for services', async () => {
    const organizationId = randomUUID();
    client.callers
      .set('admin', administrator(organizationId))
      .set('member', person({ organizationId, roles: [] }))
      .set('service', person({ kind: 'service', tier: 'service', platformUserId: undefined }));
    const { walletAddress } = await client.made('admin', 'NISTP256', { organizationId });
    const path = `/api/v1/wallets/${walletAddress}/credentials`;
    expect((await client.call('admin', `GET ${path}`)).body).toEqual({ credentials: [] });
    expect((await client.call('member', `GET ${path}`)).body.code).toBe('WALLET_NOT_FOUND');
    expect((await client.call('service', `GET ${path}`)).body.code).toBe('PERSON_REQUIRED');
    expect((await client.call('unknown', `GET ${path}`)).status).toBe(401);
  });

  test('is gone with the wallet', async () => {
    client.callers.set('dora', citizen());
    const made = await client.made('dora', 'NISTP256');
    const { body: keys } = await client.call('dora', 'GET /api/v1/wallet/holder-keys');
    const path = `/api/v1/wallets/${made.walletAddress}/credentials`;
    expect((await store(issuer.sdJwt(keys.holderJwk), 'dora', path)).status).toBe(201);
    await client.call('dora', `PATCH /api/v1/wallets/${made.walletAddress}`, { body: { status: 'Locked' } });
    replica.clock.advance(25 * 3_600_000);
    expect((await client.call('dora', `DELETE /api/v1/wallets/${made.walletAddress}`)).status).toBe(204);
    replica.clock.advance(-25 * 3_600_000);
    const { rows } = await replica.db.transact((tx) => sql`SELECT 1 FROM held_credentials`.execute(tx));
    expect(rows).toEqual([]);
  });
});

describe('the status of a credential', () => {
  const events = async (id: string) => {
    const { rows } = await replica.db.transact((tx) =>
      sql<{ kind: string }>`SELECT kind FROM outbox WHERE kind = 'CredentialStatusChanged'
        AND data->>'credentialId' = ${id}`.execute(tx),
    );
    return rows.length;
  };

  test('follows the list of its issuer, and revocation is final', async () => {
    const { id } = await stored();
    const statusNow = async () => (await get(id)).body.status;
    issuer.statuses.set(7, 'Suspended');
    expect(await statusNow()).toBe('Active');
    replica.clock.advance(60_000);
    expect([await statusNow(), await events(id)]).toEqual(['Suspended', 1]);
    issuer.statuses.set(7, 'Active');
    replica.clock.advance(60_000);
    issuer.isAway = true;
    expect(await statusNow()).toBe('Suspended');
    issuer.isAway = false;
    expect([await statusNow(), await events(id)]).toEqual(['Active', 2]);
    issuer.statuses.set(7, 'Revoked');
    replica.clock.advance(60_000);
    expect([await statusNow(), await events(id)]).toEqual(['Revoked', 3]);
    issuer.statuses.set(7, 'Active');
    replica.clock.advance(60_000);
    expect([await statusNow(), await events(id)]).toEqual(['Revoked', 3]);
  });

  test('is learnt without a reader too, by one replica for each credential', async () => {
    const { id } = await stored();
    const { id: other } = await stored({ payload: { status: undefined } });
    issuer.statuses.set(7, 'Revoked');
    const run = async () => {
      issuer.asked.length = 0;
      await statusJob(replica.deps).run(new AbortController().signal);
      return issuer.asked.length;
    };
    expect(await run()).toBe(0);
    replica.clock.advance(15 * 60_000);
    const first = statusJob(replica.deps).run(new AbortController().signal);
    expect(await run()).toBeLessThanOrEqual(1);
    await first;
    expect([await events(id), await events(other)]).toEqual([1, 0]);
    replica.clock.advance(15 * 60_000);
    expect(await run()).toBe(0);
    const listed = await client.call('alice', `GET ${base}?status=Revoked`);
    expect(listed.body.credentials.map((each: { id: string }) => each.id)).toEqual([id]);
  });

  test('is learnt although that of an earlier credential cannot be', async () => {
    await stored();
    replica.clock.advance(1);
    const payload = { status: { status_list: { idx: 9, uri: issuer.statusUri } } };
    const { id } = await stored({ payload });
    issuer.unanswered.add(7);
    issuer.statuses.set(9, 'Revoked');
    replica.clock.advance(15 * 60_000);
    const run = statusJob(replica.deps).run(new AbortController().signal);
    await expect(run).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE' });
    issuer.unanswered.clear();
    const listed = await client.call('alice', `GET ${base}?status=Revoked`);
    expect(listed.body.credentials.map((each: { id: string }) => each.id)).toEqual([id]);
  });

  test('is Expired when its time is over', async () => {
    const exp = replica.clock.nowMs() / 1000 + 30;
    const { id } = await stored({ payload: { exp, status: undefined } });
    replica.clock.advance(31_000);
    expect((await get(id)).body).toMatchObject({ status: 'Expired', statusCheckedAt: null });
    const { body } = await client.call('alice', `GET ${base}?status=Expired&type=urn:other`);
    expect(body.credentials).toEqual([]);
  });
});
