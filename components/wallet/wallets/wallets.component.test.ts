import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256 } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { administrator, openFixture, person, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';

const PHRASE = `${'abandon '.repeat(11)}about`;
const ATTESTATION = 'platform:register-attestation';
const ORGANIZATION = randomUUID();

describe('wallet routes', () => {
  const alice = person();
  const bob = person();
  let replica: Replica & ReplicaOptions;
  let client: HttpClient;

  beforeAll(async () => {
    replica = await openFixture('wallet_routes');
    client = createHttpClient(replica);
    client.callers.set('alice', alice).set('bob', bob);
    client.callers.set('service', person({ kind: 'service', tier: 'service', platformUserId: undefined }));
    client.callers.set('admin', administrator(ORGANIZATION));
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  test('recover: the published vectors, the same wallet again, refusal of another caller', async () => {
    const body = { keyType: 'ED25519', mnemonic: PHRASE };
    const first = await client.call('alice', 'POST /api/wallets/recover', { body });
    expect(first).toMatchObject({
      status: 201,
      body: { walletAddress: 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek' },
    });
    const p256 = await client.call('alice', 'POST /api/wallets/recover', {
      body: { ...body, keyType: 'NISTP256' },
    });
    expect(p256.body.walletAddress).toBe('w1p0hmrj3kw5ej7hhyvfxtckrgjpp33sck4a4x9uwpxhrmn4yyy4ywsysw99d');
    const again = await client.call('alice', 'POST /api/wallets/recover', { body });
    expect(again).toMatchObject({ status: 200, body: { id: first.body.id } });
    expect(again.body.mnemonic).toBeUndefined();
    const stranger = await client.call('bob', 'POST /api/wallets/recover', { body });
    expect(stranger).toMatchObject({ status: 409, body: { code: 'WALLET_EXISTS' } });
    const slot = await client.call('alice', `POST /api/wallets/${first.body.id}/sign`, {
      body: { data: '', algorithm: 'ED25519', derivationPath: ATTESTATION },
    });
    expect(slot.body.keyAddress).toBe('w1quj8qvh6u2mlj6fnjx0953fsvlkhcepkg4j9d5f5zfvtnume7ap4q47gykc');
    const raw = await client.call('alice', `POST /api/wallets/${first.body.id}/sign`, {
      body: { data: '', algorithm: 'ED25519', derivationPath: "m/44'/0'/0'/0'/100'" },
    });
    expect(raw.body.signature).toBe(slot.body.signature);
    for (const mnemonic of [`${'abandon '.repeat(12)}`, 'abandon', `${PHRASE} about`]) {
      const refused = await client.call('alice', 'POST /api/wallets/recover', {
        body: { ...body, mnemonic },
      });
      expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID_MNEMONIC' } });
      expect(JSON.stringify(refused.body)).not.toContain('abandon');
    }
    const rsa = await client.call('alice', 'POST /api/wallets/recover', {
      body: { ...body, keyType: 'RSA' },
    });
    expect(rsa).toMatchObject({ status: 400, body: { code: 'KEY_TYPE_NOT_RECOVERABLE' } });
  });

  test('a wallet is recovered from its mnemonic; a passphrase gives another wallet', async () => {
    const carol = person();
    client.callers.set('carol', carol);
    const wallet = await client.made('carol', 'NISTP256', { wordCount: 12, passphrase: 'pässword' });
    await replica.db.pool.query('DELETE FROM wallet_secrets WHERE wallet_id = $1', [wallet.id]);
    await replica.db.pool.query('DELETE FROM wallets WHERE id = $1', [wallet.id]);
    const body = { keyType: 'NISTP256', mnemonic: wallet.mnemonic };
    const without = await client.call('carol', 'POST /api/wallets/recover', { body });
    expect(without.body.walletAddress).not.toBe(wallet.walletAddress);
    const back = await client.call('carol', 'POST /api/wallets/recover', {
      body: { ...body, passphrase: 'pässword' },
    });
    expect(back.body.walletAddress).toBe(wallet.walletAddress);
  });

  test('the list holds the wallets of the caller, in pages; other callers see none of them', async () => {
    const dave = person();
    client.callers.set('dave', dave);
    const ids = [];
    for (let i = 0; i < 3; i += 1) {
      replica.clock.advance(1);
      ids.push((await client.made('dave')).id);
    }
    const page = (await client.call('dave', 'GET /api/wallets?page=1&pageSize=2')).body;
    expect(page).toMatchObject({ page: 1, pageSize: 2, totalCount: 3, totalPages: 2, hasMore: true });
    expect(page.items.map((wallet: { id: string }) => wallet.id)).toEqual(ids.slice(0, 2));
    expect((await client.call('bob', `GET /api/wallets/${ids[0]}`)).status).toBe(404);
    expect((await client.call('unknown', 'GET /api/wallets')).status).toBe(401);
    expect((await client.call('service', 'GET /api/wallets')).status).toBe(403);
    expect((await client.call('dave', 'GET /api/wallets?pageSize=101')).status).toBe(400);
  });

  test('Idempotency-Key: one wallet, no mnemonic in the repetition, 409 for another body, expiry after a day', async () => {
    const headers = { 'idempotency-key': 'k-1' };
    const body = { title: 'Once', keyType: 'ED25519' };
    const race = await Promise.all(
      Array.from({ length: 6 }, () => client.call('alice', 'POST /api/v1/wallets', { body, headers })),
    );
    expect(new Set(race.map((each) => each.body.id)).size).toBe(1);
    expect(race.every((each) => each.status === 201)).toBe(true);
    expect(race.filter((each) => each.body.mnemonic !== undefined)).toHaveLength(1);
    expect(race.filter((each) => each.headers['idempotency-replayed'] === 'true')).toHaveLength(5);
    const other = await client.call('alice', 'POST /api/wallets', {
      body: { ...body, title: 'Twice' },
      headers,
    });
    expect(other).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_KEY_REUSED' } });
    const bobs = await client.call('bob', 'POST /api/wallets', { body, headers });
    expect(bobs.body.id).not.toBe(race[0]?.body.id);
    replica.clock.advance(24 * 3_600_000);
    const nextDay = await client.call('alice', 'POST /api/wallets', {
      body: { ...body, title: 'Twice' },
      headers,
    });
    expect(nextDay.status).toBe(201);
    expect(nextDay.body.mnemonic).toBeDefined();
  });

  test('Idempotency-Key: bodies have the same hash as in rows of earlier releases', async () => {
    const headers = { 'idempotency-key': 'k-2' };
    const body = { title: 'Kept', keyType: 'ED25519', passphrase: 'secret', wordCount: 12 };
    expect((await client.call('alice', 'POST /api/v1/wallets', { body, headers })).status).toBe(201);
    const { title, keyType, wordCount } = body;
    const hash = sha256(canonicalBytes({ title, description: '', keyType, organizationId: '', wordCount }));
    const rows = await replica.db.transact((tx) =>
      sql`select 1 from idempotency_keys where body_hash = ${Buffer.from(hash)}`.execute(tx),
    );
    expect(rows.rows).toHaveLength(1);
  });

  test('a malformed create request writes no rows', async () => {
    const count = async () =>
      Number((await replica.db.pool.query('SELECT count(*) FROM wallets')).rows[0].count);
    const before = await count();
    const bodies = [
      {},
      { title: '', keyType: 'ED25519' },
      { title: 'a\0b', keyType: 'ED25519' },
      { title: 'x', description: '\ud800', keyType: 'ED25519' },
      { title: 'x', keyType: 'RSA2' },
      { title: 'x'.repeat(101), keyType: 'ED25519' },
      { title: 'x', keyType: 'ED25519', wordCount: 15 },
      { title: 'x', keyType: 'ED25519', organizationId: 'me' },
    ];
    for (const body of bodies) {
      expect(await client.call('alice', 'POST /api/wallets', { body })).toMatchObject({
        status: 400,
        body: { code: 'INVALID_REQUEST' },
      });
    }
    const foreign = { title: 'x', keyType: 'ED25519', organizationId: randomUUID() };
    expect((await client.call('admin', 'POST /api/wallets', { body: foreign })).status).toBe(403);
    expect(
      (
        await client.call('alice', 'POST /api/wallets', {
          body: { ...foreign, organizationId: ORGANIZATION },
        })
      ).status,
    ).toBe(403);
    const rsa = { title: 'x', keyType: 'RSA', organizationId: ORGANIZATION };
    expect(await client.call('admin', 'POST /api/wallets', { body: rsa })).toMatchObject({
      status: 400,
      body: { code: 'ORGANIZATION_KEY_TYPE' },
    });
    expect(await count()).toBe(before);
  });

  test('a seeded organisation, whose id is no RFC 9562 UUID, gets its wallet', async () => {
    client.callers.set('system', administrator(SYSTEM_ORGANIZATION_ID));
    const wallet = await client.made('system', 'ED25519', { organizationId: SYSTEM_ORGANIZATION_ID });
    expect(wallet).toMatchObject({ ownerKind: 'Organization', owner: SYSTEM_ORGANIZATION_ID });
  });

  test('a path that names no wallet is 404, independent of its characters', async () => {
    for (const id of ['%00', 'a%2Fb', 'x'.repeat(200), "1'--", 'w1%E2%82%AC']) {
      expect((await client.call('alice', `GET /api/wallets/${id}`)).status).toBe(404);
    }
    const { id } = await client.made('alice');
    expect((await client.call('alice', `DELETE /api/wallets/${id}/access/%00`)).status).toBe(404);
    expect((await client.call('alice', `PUT /api/wallets/${id}`)).status).toBe(405);
  });

  test('no secret is stored or logged in plain text', async () => {
    const wallet = await client.made('alice');
    const dump = await replica.db.pool.query(
      'SELECT w::text AS w, s::text AS s FROM wallets w JOIN wallet_secrets s ON s.wallet_id = w.id WHERE w.id = $1',
      [wallet.id],
    );
    const [word] = wallet.mnemonic.split(' ');
    expect(dump.rows).toHaveLength(1);
    expect(JSON.stringify(dump.rows)).not.toContain(wallet.mnemonic);
    expect(JSON.stringify(replica.runtime.lines)).not.toContain(`${word} `);
  });
});
