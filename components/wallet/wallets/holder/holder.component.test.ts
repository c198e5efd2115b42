import { randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, importJWK, type JWK, jwtVerify } from 'jose';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  administrator,
  openFixture,
  person,
  type Replica,
  type ReplicaOptions,
  startMs,
} from '../../testing/fixture.ts';
import { citizen } from '../../testing/holder-fixture.ts';
import { createHttpClient, type HttpClient } from '../../testing/http-client.ts';
import { purgeNotices } from './store.ts';

const notices = '/api/v1/wallet/pending-applications';
const history = '/api/v1/wallet/presentations';

let replica: Replica & ReplicaOptions;
let client: HttpClient;
const alice = citizen();
const bob = citizen();

beforeAll(async () => {
  replica = await openFixture('wallet_holder');
  client = createHttpClient(replica);
  const service = person({ kind: 'service', tier: 'service', platformUserId: undefined });
  client.callers
    .set('alice', alice)
    .set('bob', bob)
    .set('platform', person({ platformUserId: alice.platformUserId }))
    .set('service', service)
    .set('delegated', {
      ...service,
      delegation: {
        userId: 'u',
        platformUserId: alice.platformUserId,
        organizationId: undefined,
        roles: [],
        sessionId: undefined,
      },
    })
    .set('nameless', citizen({ platformUserId: undefined }));
});

afterAll(async () => {
  await client.close();
  await replica.close();
});

const call = (who: string, target: string, body?: object) =>
  client.call(who, target, body === undefined ? {} : { body });

describe('every route of a holder', () => {
  test.each([
    `GET ${notices}`,
    `PUT ${notices}`,
    `DELETE ${notices}`,
    'GET /api/v1/wallet/holder-keys',
    `POST ${history}/sign-kb`,
    `GET ${history}`,
    `DELETE ${history}/${randomUUID()}`,
    `POST ${history}/log`,
  ])('%s is for people with the audience of citizen wallets', async (target) => {
    const body = { PUT: { label: 'x' }, POST: report() }[target.split(' ', 1)[0] ?? ''];
    const sent = target.endsWith('sign-kb') ? { signingInput: 'a.b' } : body;
    expect((await call('unknown', target, sent)).status).toBe(401);
    for (const who of ['platform', 'service', 'delegated']) {
      const refused = await call(who, target, sent);
      expect([refused.status, refused.body.code], who).toEqual([403, 'FORBIDDEN']);
    }
    const nameless = await call('nameless', target, sent);
    expect([nameless.status, nameless.body.code]).toEqual([403, 'PERSON_REQUIRED']);
  });
});

describe('the notice of a pending application', () => {
  test('is set, read, replaced and cleared, for each person apart', async () => {
    expect((await call('alice', `GET ${notices}`)).body).toEqual({ notice: null });
    const put = await call('alice', `PUT ${notices}`, { label: '  Parking permit  ' });
    expect([put.status, put.body.notice.label]).toEqual([200, 'Parking permit']);
    expect((await call('alice', `GET ${notices}`)).body).toEqual(put.body);
    expect((await call('bob', `GET ${notices}`)).body).toEqual({ notice: null });
    const replaced = await call('alice', `PUT ${notices}`, { label: 'Library card' });
    expect(Date.parse(replaced.body.notice.setAt)).toBeGreaterThanOrEqual(Date.parse(put.body.notice.setAt));
    expect((await call('bob', `DELETE ${notices}`)).status).toBe(204);
    expect((await call('alice', `GET ${notices}`)).body.notice.label).toBe('Library card');
    for (let repeated = 0; repeated < 2; repeated += 1) {
      expect((await call('alice', `DELETE ${notices}`)).status).toBe(204);
    }
    expect((await call('alice', `GET ${notices}`)).body).toEqual({ notice: null });
  });

  test.each([
    ['blanks', ' \t\u3000 '],
    ['nothing', ''],
    ['81 characters', 'a'.repeat(81)],
    ['two lines', 'a\nb'],
    ['a NUL', 'a\0b'],
    ['invisible characters', '\u200b\u2800'],
    ['an override of direction', 'a\u202eb'],
  ])('is refused with %s as label', async (_name, label) => {
    const refused = await call('bob', `PUT ${notices}`, { label });
    expect([refused.status, refused.body.code]).toEqual([400, 'LABEL_INVALID']);
    expect((await call('bob', `GET ${notices}`)).body).toEqual({ notice: null });
  });

  test('may have 80 characters, also those of two code units', async () => {
    for (const label of ['a'.repeat(80), '\u{1f4dc}'.repeat(80)]) {
      expect((await call('bob', `PUT ${notices}`, { label })).body.notice.label).toBe(label);
    }
    expect((await call('bob', `PUT ${notices}`, { label: 7 })).body.code).toBe('INVALID_REQUEST');
    expect((await call('bob', `PUT ${notices}`, { label: 'a\ud800' })).body.code).toBe('INVALID_REQUEST');
    expect((await call('bob', `PUT ${notices}`, {})).body.code).toBe('INVALID_REQUEST');
  });

  test('expires 24 hours after it was set, by the clock of the database, and is purged', async () => {
    const both = [
      await call('alice', `PUT ${notices}`, { label: 'A' }),
      await call('bob', `PUT ${notices}`, { label: 'B' }),
    ];
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    const lifetimes = await replica.db.transact((tx) =>
      sql<{ hours: number }>`SELECT extract(epoch FROM expires_at - set_at)::int / 3600 AS hours
        FROM application_notices`.execute(tx),
    );
    expect(lifetimes.rows.map(({ hours }) => hours)).toEqual([24, 24]);
    replica.clock.advance(48 * 3_600_000);
    expect((await call('alice', `GET ${notices}`)).body.notice.label).toBe('A');
    await replica.db.transact((tx) =>
      sql`UPDATE application_notices SET expires_at = now() - interval '1 ms'
        WHERE platform_user_id = ${alice.platformUserId}`.execute(tx),
    );
    expect((await call('alice', `GET ${notices}`)).body).toEqual({ notice: null });
    await replica.db.transact(purgeNotices);
    const { rows } = await replica.db.transact((tx) =>
      sql<{ label: string }>`SELECT label FROM application_notices`.execute(tx),
    );
    expect(rows).toEqual([{ label: 'B' }]);
  });
});

describe.each([
  ['NISTP256', 'ES256', { kty: 'EC', crv: 'P-256', alg: 'ES256' }],
  ['ED25519', 'EdDSA', { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA' }],
] as const)('the holder key of a wallet of %s', (keyType, alg, jwk) => {
  const holder = citizen();
  const stranger = citizen();
  let wallet: { id: string; walletAddress: string; publicKey: string };

  beforeAll(async () => {
    client.callers.set('holder', holder);
    await client.made('holder', 'RSA');
    replica.clock.advance(1);
    wallet = await client.made('holder', keyType);
    replica.clock.advance(1);
    await client.made('holder', keyType);
    client.callers.set('stranger', { ...stranger, walletAddress: wallet.walletAddress });
  });

  const inputOf = (change: { header?: object; payload?: object } = {}) =>
    [
      { typ: 'kb+jwt', alg, ...change.header },
      {
        nonce: 'n',
        aud: 'https://v.example',
        sd_hash: 'h',
        iat: Math.floor(replica.clock.nowMs() / 1000),
        ...change.payload,
      },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
  const sign = (who: string, signingInput: string) => call(who, `POST ${history}/sign-kb`, { signingInput });

  test('signs key-binding JWTs that another library verifies', async () => {
    const keys = (await call('holder', 'GET /api/v1/wallet/holder-keys')).body;
    expect(keys).toMatchObject({
      holderJwk: jwk,
      encryptionPublicKey: wallet.publicKey,
      algorithm: keyType,
      walletAddress: wallet.walletAddress,
    });
    expect(await calculateJwkThumbprint(keys.holderJwk as JWK)).toHaveLength(43);
    const signingInput = inputOf();
    const { status, body } = await sign('holder', signingInput);
    expect([status, body.algorithm]).toEqual([200, alg]);
    const verified = await jwtVerify(
      `${signingInput}.${body.signature}`,
      await importJWK(keys.holderJwk, alg),
      {
        typ: 'kb+jwt',
        audience: 'https://v.example',
        currentDate: new Date(replica.clock.nowMs()),
      },
    );
    expect(verified.payload['nonce']).toBe('n');
  });

  test('signs nothing else', async () => {
    const other = alg === 'ES256' ? 'EdDSA' : 'ES256';
    const iat = Math.floor(replica.clock.nowMs() / 1000) - 301;
    for (const [input, code] of [
      [inputOf({ header: { crit: ['x'] } }), 'KB_HEADER_INVALID'],
      [inputOf({ header: { typ: 'openid4vci-proof+jwt' } }), 'KB_HEADER_INVALID'],
      [inputOf({ header: { alg: other } }), 'KB_ALG_MISMATCH'],
      [inputOf({ payload: { iat } }), 'KB_PAYLOAD_INVALID'],
      [`${inputOf()}.AA`, 'KB_HEADER_INVALID'],
      [inputOf({ payload: { nonce: 'n'.repeat(8_192) } }), 'INVALID_REQUEST'],
    ] as const) {
      const refused = await sign('holder', input);
      expect([refused.status, refused.body.code]).toEqual([400, code]);
    }
  });

  test('is that of the oldest own wallet, whatever wallet a token names', async () => {
    const refused = await sign('stranger', inputOf());
    expect([refused.status, refused.body.code]).toEqual([404, 'WALLET_NOT_FOUND']);
    expect((await call('stranger', 'GET /api/v1/wallet/holder-keys')).status).toBe(404);
    const path = `POST /api/v1/wallets/${wallet.walletAddress}/access`;
    const grant = {
      subject: stranger.platformUserId,
      accessRight: 'ReadWrite',
      allowedDerivationContexts: [],
    };
    expect((await call('holder', path, grant)).status).toBe(201);
    expect((await sign('stranger', inputOf())).status).toBe(404);
    client.callers.set('elsewhere', { ...holder, walletAddress: 'w1nothing' });
    const { body } = await call('elsewhere', 'GET /api/v1/wallet/holder-keys');
    expect(body.walletAddress).toBe(wallet.walletAddress);
  });

  test('does not sign while the wallet is locked, and is another one once it is deleted', async () => {
    const set = (status: string) =>
      replica.db.transact((tx) =>
        sql`UPDATE wallets SET status = ${status} WHERE id = ${wallet.id}`.execute(tx),
      );
    await set('Locked');
    const refused = await sign('holder', inputOf());
    expect([refused.status, refused.body.code]).toEqual([423, 'WALLET_LOCKED']);
    await set('Active');
    expect((await sign('holder', inputOf())).status).toBe(200);
    await set('Deleted');
    const { body } = await call('holder', 'GET /api/v1/wallet/holder-keys');
    expect(body.walletAddress).not.toBe(wallet.walletAddress);
    await set('Active');
  });
});

test('no credentials are held by the wallet of an organisation, nor a person by an RSA wallet', async () => {
  const organizationId = randomUUID();
  const admin = administrator(organizationId);
  client.callers.set('admin', admin);
  await client.made('admin', 'ED25519', { organizationId });
  client.callers.set('admin as citizen', citizen({ platformUserId: admin.platformUserId }));
  client.callers.set('rsa', citizen());
  await client.made('rsa', 'RSA');
  for (const who of ['admin as citizen', 'rsa']) {
    const refused = await call(who, 'GET /api/v1/wallet/holder-keys');
    expect([refused.status, refused.body.code]).toEqual([404, 'WALLET_NOT_FOUND']);
  }
});

function report(change: object = {}) {
  return {
    id: randomUUID(),
    credentialId: 'urn:uuid:1',
    verifierLabel: 'City library',
    disclosedClaims: ['given_name'],
    presentedAt: new Date(startMs).toISOString(),
    outcome: 'Presented',
    ...change,
  };
}

describe('the history of presentations', () => {
  const reported = (who: string, body: object) => call(who, `POST ${history}/log`, body);
  const entriesOf = async (who: string) => (await call(who, `GET ${history}`)).body.entries;

  test('is empty at first, and newest first', async () => {
    expect(await entriesOf('alice')).toEqual([]);
    const times = [1, 3, 2].map((day) => new Date(startMs + day * 86_400_000).toISOString());
    const entries = times.map((presentedAt) => report({ presentedAt }));
    expect((await reported('alice', { entries: entries.slice(0, 2) })).status).toBe(204);
    expect((await reported('alice', entries[2] ?? {})).status).toBe(204);
    const listed = await entriesOf('alice');
    expect(listed.map(({ id }: { id: string }) => id)).toEqual([
      entries[1]?.id,
      entries[2]?.id,
      entries[0]?.id,
    ]);
    expect(listed[0]).toEqual({
      ...entries[1],
      presentedAt: expect.any(String),
      verifierDid: null,
      registerId: null,
      actionTxId: null,
    });
    expect(await entriesOf('bob')).toEqual([]);
  });

  test('takes a repeated report of an id as the newer state, and keeps the time of the first', async () => {
    const first = report({ outcome: 'VerifierRejected' });
    await reported('bob', first);
    const timeOf = () =>
      replica.db.transact((tx) =>
        sql<{ at: Date }>`SELECT reported_at AS at FROM presentations WHERE id = ${first.id}`.execute(tx),
      );
    const before = await timeOf();
    await reported('bob', {
      entries: [
        { ...first, outcome: 'Presented' },
        { ...first, outcome: 'Acknowledged' },
      ],
    });
    expect(await entriesOf('bob')).toMatchObject([{ id: first.id, outcome: 'Acknowledged' }]);
    expect((await timeOf()).rows).toEqual(before.rows);
    await reported('alice', { ...first, verifierLabel: 'mine' });
    expect(await entriesOf('bob')).toMatchObject([{ id: first.id, verifierLabel: 'City library' }]);
    await reported('bob', { ...first, id: first.id.toUpperCase() });
    expect(await entriesOf('bob')).toHaveLength(1);
  });

  test('deletes own entries; foreign, unknown and malformed ids are answered alike', async () => {
    const [own] = await entriesOf('bob');
    for (const [who, id] of [
      ['stranger-of-history', own.id],
      ['bob', randomUUID()],
      ['bob', 'none'],
      ['bob', '%27'],
    ] as const) {
      client.callers.set('stranger-of-history', citizen());
      expect((await call(who, `DELETE ${history}/${id}`)).status).toBe(204);
    }
    expect(await entriesOf('bob')).toHaveLength(1);
    for (let repeated = 0; repeated < 2; repeated += 1) {
      expect((await call('bob', `DELETE ${history}/${own.id}`)).status).toBe(204);
    }
    expect(await entriesOf('bob')).toEqual([]);
  });

  test.each([
    ['51 entries', { entries: Array.from({ length: 51 }, () => report()) }],
    ['no entries', { entries: [] }],
    ['an entry and entries', { ...report(), entries: [report()] }],
    ['an id that is no UUID', report({ id: '1' })],
    ['an unknown outcome', report({ outcome: 'Shown' })],
    ['a label of 201 characters', report({ verifierLabel: 'a'.repeat(201) })],
    ['a label with a line feed', report({ verifierLabel: 'a\nb' })],
    ['a DID of 201 characters', report({ verifierDid: 'a'.repeat(201) })],
    ['65 claims', report({ disclosedClaims: Array.from({ length: 65 }, () => 'a') })],
    ['values of claims', report({ disclosedClaims: { given_name: 'Ada' } })],
    ['a NUL', report({ credentialId: 'a\0' })],
    ['a time that is none', report({ presentedAt: 'yesterday' })],
    ['a time before 1970', report({ presentedAt: '0001-01-01T00:00:00Z' })],
    ['a member that is unknown', report({ values: ['Ada'] })],
  ])('refuses %s', async (_name, body) => {
    const refused = await reported('bob', body);
    expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(await entriesOf('bob')).toEqual([]);
  });

  test('is bounded: the oldest entries are dropped, also from concurrent reports', async () => {
    client.callers.set('busy', citizen());
    const ids = Array.from({ length: 550 }, () => randomUUID());
    const entries = ids.map((id, day) =>
      report({ id, presentedAt: new Date(startMs + day * 1_000).toISOString() }),
    );
    const batches = Array.from({ length: 11 }, (_, n) => entries.slice(50 * n, 50 * n + 50));
    const answers = await Promise.all(batches.map((batch) => reported('busy', { entries: batch.reverse() })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
    await reported('busy', entries[549] ?? {});
    const listed = await entriesOf('busy');
    expect(listed).toHaveLength(500);
    expect(listed[0].id).toBe(ids[549]);
    expect(listed.at(-1).id).toBe(ids[50]);
    const { rows } = await replica.db.transact((tx) =>
      sql<{ count: number }>`SELECT count(*)::int AS count FROM presentations`.execute(tx),
    );
    expect(rows[0]?.count).toBeLessThan(520);
  });
});
