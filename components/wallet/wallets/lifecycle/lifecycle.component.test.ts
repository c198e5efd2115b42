import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import {
  administrator,
  openFixture,
  person,
  type Replica,
  type ReplicaOptions,
} from '../../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../../testing/http-client.ts';

const HOUR_MS = 3_600_000;

describe('the lifecycle of wallets', () => {
  let replica: Replica & ReplicaOptions;
  let client: HttpClient;
  const alice = person();

  beforeAll(async () => {
    replica = await openFixture('wallet_lifecycle');
    client = createHttpClient(replica);
    client.callers.set('alice', alice).set('bob', person());
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  const patch = (who: string, id: string, body: object) =>
    client.call(who, `PATCH /api/wallets/${id}`, { body });
  const remove = (who: string, id: string) => client.call(who, `DELETE /api/wallets/${id}`);
  const sign = (who: string, id: string, change: object = {}) =>
    client.call(who, `POST /api/wallets/${id}/sign`, {
      body: { data: 'AAAA', algorithm: 'ED25519', ...change },
    });
  const eventsOf = async (id: string) => {
    const { rows } = await replica.db.transact((tx) =>
      sql<{
        kind: string;
        status: string;
      }>`SELECT kind, data->>'status' AS status FROM outbox WHERE key = ${id}
        ORDER BY sequence`.execute(tx),
    );
    return rows.map(({ kind, status }) => `${kind} ${status}`);
  };
  const actsOf = async (id: string) => {
    const query = 'SELECT act FROM wallet_audit WHERE wallet_id = $1 ORDER BY id';
    return (await replica.db.pool.query(query, [id])).rows.map(({ act }) => act);
  };

  test('texts change, and only those that the request names', async () => {
    const { id } = await client.made('alice', 'ED25519', { description: 'First' });
    expect((await patch('alice', id, { title: '  New  ' })).body).toMatchObject({
      title: 'New',
      description: 'First',
    });
    const v1 = await client.call('alice', `PATCH /api/v1/wallets/${id}`, { body: { description: null } });
    expect(v1.body).toMatchObject({ title: 'New', description: null, status: 'Active' });
    for (const body of [
      {},
      { title: ' ' },
      { title: 'x'.repeat(101) },
      { status: 'Deleted' },
      { other: 1 },
    ]) {
      expect((await patch('alice', id, body)).status).toBe(400);
    }
    expect((await patch('bob', id, { title: 'Mine' })).status).toBe(403);
    expect(await actsOf(id)).toEqual([]);
    expect(await eventsOf(id)).toEqual(['WalletCreated Active']);
  });

  test('a locked wallet neither signs nor decrypts, and is no recipient; unlocked it does', async () => {
    const { id } = await client.made('alice');
    const encrypt = () =>
      client.call('alice', `POST /api/wallets/${id}/encrypt`, { body: { data: 'x', recipientWalletId: id } });
    const { encryptedData } = (await encrypt()).body;
    const decrypt = () =>
      client.call('alice', `POST /api/wallets/${id}/decrypt`, { body: { encryptedData } });
    const notified = replica.notifications();
    expect((await patch('alice', id, { status: 'Locked' })).body.status).toBe('Locked');
    expect((await patch('alice', id, { status: 'Locked' })).status).toBe(200);
    for (const answer of [await sign('alice', id), await decrypt(), await encrypt()]) {
      expect(answer).toMatchObject({ status: 423, body: { code: 'WALLET_LOCKED' } });
    }
    expect((await patch('alice', id, { status: 'Active' })).body.status).toBe('Active');
    expect((await sign('alice', id)).status).toBe(200);
    expect((await decrypt()).body.data).toBe('x');
    expect(replica.notifications() - notified).toBe(2);
    expect(await actsOf(id)).toEqual(['WalletLocked', 'WalletUnlocked']);
    expect(await eventsOf(id)).toEqual([
      'WalletCreated Active',
      'WalletStatusChanged Locked',
      'WalletStatusChanged Active',
    ]);
  });

  test('only a wallet that was locked long enough is deleted; address and public key stay', async () => {
    const made = await client.made('alice');
    const { id } = made;
    await client.call('alice', `POST /api/wallets/${id}/access`, {
      body: { subject: randomUUID(), accessRight: 'ReadOnly' },
    });
    await sign('alice', id);
    expect(await remove('alice', id)).toMatchObject({ status: 409, body: { code: 'WALLET_NOT_LOCKED' } });
    await patch('alice', id, { status: 'Locked' });
    replica.clock.advance(24 * HOUR_MS - 1);
    await patch('alice', id, { status: 'Locked' });
    expect(await remove('alice', id)).toMatchObject({
      status: 409,
      body: { code: 'WALLET_LOCKED_TOO_RECENTLY' },
    });
    expect((await remove('bob', id)).status).toBe(403);
    replica.clock.advance(1);
    const race = await Promise.all([remove('alice', id), remove('alice', id)]);
    expect(race.map(({ status }) => status)).toEqual([204, 204]);
    expect((await client.call('alice', `GET /api/wallets/${id}`)).body).toMatchObject({
      status: 'Deleted',
      walletAddress: made.walletAddress,
      publicKey: made.publicKey,
    });
    expect(await sign('alice', id)).toMatchObject({ status: 410, body: { code: 'WALLET_DELETED' } });
    expect((await patch('alice', id, { status: 'Active' })).status).toBe(410);
    const secrets = await replica.db.pool.query('SELECT 1 FROM wallet_secrets WHERE wallet_id = $1', [id]);
    const open = await replica.db.pool.query(
      'SELECT 1 FROM wallet_grants WHERE wallet_id = $1 AND ended_at IS NULL',
      [id],
    );
    expect([secrets.rowCount, open.rowCount]).toEqual([0, 0]);
    expect(await actsOf(id)).toEqual(['WalletLocked', 'WalletDeleted']);
    expect((await eventsOf(id)).at(-1)).toBe('WalletStatusChanged Deleted');
    const body = { keyType: 'ED25519', mnemonic: made.mnemonic };
    expect((await client.call('bob', 'POST /api/wallets/recover', { body })).status).toBe(409);
    const back = await client.call('alice', 'POST /api/wallets/recover', { body });
    expect(back).toMatchObject({ status: 201, body: { id, status: 'Active' } });
    expect((await sign('alice', id)).status).toBe(200);
  });

  test('unlocking begins a new time', async () => {
    const { id } = await client.made('alice');
    await patch('alice', id, { status: 'Locked' });
    replica.clock.advance(24 * HOUR_MS);
    await patch('alice', id, { status: 'Active' });
    await patch('alice', id, { status: 'Locked' });
    expect((await remove('alice', id)).body.code).toBe('WALLET_LOCKED_TOO_RECENTLY');
  });

  test('the user of a derived key may lock it; unlocking and deleting are for Administrators', async () => {
    const organizationId = randomUUID();
    const userId = randomUUID();
    client.callers.set('admin', administrator(organizationId));
    client.callers.set('officer', person({ platformUserId: userId, organizationId }));
    replica.members.add(`${organizationId} ${userId}`);
    await client.call('admin', `POST /api/wallets/org/${organizationId}/master-key`);
    const { body: key } = await client.call('admin', `POST /api/wallets/org/${organizationId}/derive-key`, {
      body: { userId, usage: 'Governance' },
    });
    const id = key.derivedKeyId;
    expect((await patch('officer', id, { status: 'Locked' })).status).toBe(200);
    expect((await patch('officer', id, { status: 'Active' })).status).toBe(403);
    expect((await patch('admin', id, { status: 'Active' })).status).toBe(200);
    await patch('officer', id, { status: 'Locked' });
    replica.clock.advance(24 * HOUR_MS);
    expect((await remove('officer', id)).status).toBe(403);
    expect((await remove('admin', id)).status).toBe(204);
  });

  test('the words of an organisation bring back its wallet, for its Administrators', async () => {
    const organizationId = randomUUID();
    client.callers.set('chief', administrator(organizationId));
    const { body: master } = await client.call('chief', `POST /api/wallets/org/${organizationId}/master-key`);
    const recover = (who: string, more: object = {}, mnemonic = master.mnemonic) =>
      client.call(who, 'POST /api/wallets/recover', { body: { keyType: 'ED25519', mnemonic, ...more } });
    expect(await recover('chief', { organizationId })).toMatchObject({
      status: 200,
      body: { status: 'Active' },
    });
    expect((await recover('chief')).body.code).toBe('WALLET_EXISTS');
    expect((await recover('alice', { organizationId })).status).toBe(403);
    const address = master.walletAddress;
    await patch('chief', address, { status: 'Locked' });
    replica.clock.advance(24 * HOUR_MS);
    expect((await remove('chief', address)).status).toBe(204);
    expect((await recover('chief')).body.code).toBe('WALLET_EXISTS');
    const back = await recover('chief', { organizationId });
    expect(back).toMatchObject({
      status: 201,
      body: { walletAddress: address, ownerKind: 'Organization', organizationId, status: 'Active' },
    });
    const attested = await sign('chief', address, { derivationPath: 'platform:register-attestation' });
    expect(attested.status).toBe(200);
    const others = `${'abandon '.repeat(11)}about`;
    expect((await recover('chief', { organizationId }, others)).body.code).toBe('ORGANIZATION_WALLET_EXISTS');
  });

  test('the words of an organisation fill its free place', async () => {
    const organizationId = randomUUID();
    client.callers.set('founder', administrator(organizationId));
    const body = { keyType: 'NISTP256', mnemonic: `${'zoo '.repeat(11)}wrong`, organizationId };
    const race = await Promise.all(
      [1, 2].map(() => client.call('founder', 'POST /api/wallets/recover', { body })),
    );
    expect(race.map(({ status }) => status).sort()).toEqual([200, 201]);
    expect(race[0]?.body).toMatchObject({ ownerKind: 'Organization', owner: organizationId });
    expect(
      (await client.call('founder', 'POST /api/wallets/recover', { body: { ...body, keyType: 'RSA' } }))
        .status,
    ).toBe(400);
  });

  test('of two deleted wallets of an organisation that are brought back in one instant, one is', async () => {
    const organizationId = randomUUID();
    client.callers.set('one', administrator(organizationId)).set('two', administrator(organizationId));
    const recover = (who: string, mnemonic: string) =>
      client.call(who, 'POST /api/wallets/recover', {
        body: { keyType: 'ED25519', mnemonic, organizationId },
      });
    const made = [];
    for (const mnemonic of [`${'legal '.repeat(11)}acid`, `${'letter '.repeat(11)}ability`]) {
      const { status, body } = await recover('one', mnemonic);
      expect(status).toBe(201);
      await patch('one', body.id, { status: 'Locked' });
      replica.clock.advance(24 * HOUR_MS);
      expect((await remove('one', body.id)).status).toBe(204);
      made.push({ id: body.id, mnemonic });
    }
    const [first, second] = made;
    const late = await replica.db.transact(async (tx) => {
      await sql`UPDATE wallets SET status = 'Active' WHERE id = ${first?.id}`.execute(tx);
      const answer = recover('two', second?.mnemonic ?? '');
      await waitFor(async () => {
        const query = 'SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted';
        return (await replica.db.pool.query(query)).rows[0]?.n > 0;
      });
      return { answer };
    });
    expect(await late.answer).toMatchObject({ status: 409, body: { code: 'ORGANIZATION_WALLET_EXISTS' } });
  });

  test('the audit record is append-only', async () => {
    for (const statement of [
      'UPDATE wallet_audit SET act = $1',
      'DELETE FROM wallet_audit WHERE act <> $1',
    ]) {
      await expect(replica.db.pool.query(statement, ['x'])).rejects.toMatchObject({ code: '42501' });
    }
  });
});
