import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seedFromMnemonic } from '#core/crypto/bip39.ts';
import { createSigner } from '#core/crypto/sign.ts';
import { FindEncryptionKeysRequestSchema } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { privateKeyAt } from '../../custody/material.ts';
import { encryptionHandlers } from '../../encryption/rpc.ts';
import { walletHandlers } from '../../signing/rpc.ts';
import {
  administrator,
  openFixture,
  person,
  type Replica,
  type ReplicaOptions,
  rpcContext,
} from '../../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../../testing/http-client.ts';

const DATA = 'aGVsbG8=';

describe('keys of organisations', () => {
  let replica: Replica & ReplicaOptions;
  let client: HttpClient;

  beforeAll(async () => {
    replica = await openFixture('wallet_org_keys');
    client = createHttpClient(replica);
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  /** An organisation with an administrator and an officer, who is a member, and, unless told otherwise, a master key. */
  async function organization({ withMaster = true } = {}) {
    const id = randomUUID();
    const names = { admin: `admin ${id}`, officer: `officer ${id}` };
    const userId = randomUUID();
    client.callers.set(names.admin, administrator(id));
    client.callers.set(
      names.officer,
      person({ platformUserId: userId, organizationId: id, roles: ['User'] }),
    );
    replica.members.add(`${id} ${userId}`);
    const base = `/api/wallets/org/${id}`;
    const derive = (change: object = {}) =>
      client.call(names.admin, `POST ${base}/derive-key`, { body: { userId, usage: 'Identity', ...change } });
    const rotate = (key: string, headers = {}) =>
      client.call(names.admin, `POST ${base}/keys/${key}/rotate`, { headers });
    const revoke = (key: string) => client.call(names.admin, `DELETE ${base}/keys/${key}`);
    const master = withMaster ? (await client.call(names.admin, `POST ${base}/master-key`)).body : undefined;
    return { id, userId, base, ...names, derive, rotate, revoke, master };
  }

  const sign = (who: string, wallet: string, change: object = {}) =>
    client.call(who, `POST /api/wallets/${wallet}/sign`, {
      body: { data: DATA, algorithm: 'ED25519', ...change },
    });
  const encrypt = async (who: string, wallet: string) =>
    client.call(who, `POST /api/wallets/${wallet}/encrypt`, {
      body: { data: 'secret', recipientWalletId: wallet },
    });
  const decrypt = (who: string, wallet: string, encryptedData: string) =>
    client.call(who, `POST /api/wallets/${wallet}/decrypt`, { body: { encryptedData } });

  test('the master key is made once; its words are in the first answer alone', async () => {
    const { base, admin, id } = await organization({ withMaster: false });
    const headers = { 'idempotency-key': 'm' };
    const made = await client.call(admin, `POST ${base}/master-key`, { headers, body: {} });
    expect(made).toMatchObject({ status: 201, body: { orgId: id } });
    expect(made.body.mnemonic.split(' ')).toHaveLength(24);
    const repeated = await client.call(admin, `POST ${base}/master-key`, { headers, body: {} });
    expect(repeated.status).toBe(201);
    expect(repeated.headers['idempotency-replayed']).toBe('true');
    expect(repeated.body).toMatchObject({ walletAddress: made.body.walletAddress });
    expect(repeated.body.mnemonic).toBeUndefined();
    const again = await client.call(admin, `POST /api/v1/wallets/org/${id}/master-key`);
    expect(again).toMatchObject({ status: 409, body: { code: 'ORGANIZATION_WALLET_EXISTS' } });
    const rows = await replica.db.pool.query('SELECT act FROM wallet_audit WHERE organization_id = $1', [id]);
    expect(rows.rows).toEqual([{ act: 'MasterKeyCreated' }]);
    expect(JSON.stringify(replica.runtime.lines)).not.toContain(made.body.mnemonic);
  });

  test('a master key is replaced while nothing was derived; the former one is locked and leaves its place', async () => {
    const { base, admin, derive, master } = await organization();
    const replace = (replaces: string) =>
      client.call(admin, `POST ${base}/master-key`, { body: { replaces } });
    const race = await Promise.all([replace(master.walletAddress), replace(master.walletAddress)]);
    expect(race.map(({ status }) => status).sort()).toEqual([201, 409]);
    const made = race.find(({ status }) => status === 201)?.body;
    expect(made.mnemonic).not.toBe(master.mnemonic);
    const former = await client.call(admin, `GET /api/wallets/${master.walletAddress}`);
    expect(former.body).toMatchObject({ status: 'Locked' });
    expect(await replace(master.walletAddress)).toMatchObject({
      status: 409,
      body: { code: 'MASTER_KEY_CHANGED' },
    });
    const { body: key } = await derive();
    expect(await replace(made.walletAddress)).toMatchObject({
      status: 409,
      body: { code: 'MASTER_KEY_IN_USE' },
    });
    expect(
      (await sign(admin, made.walletAddress, { derivationPath: 'platform:register-attestation' })).status,
    ).toBe(200);
    const fromWords = createSigner(
      privateKeyAt(
        'ED25519',
        { purpose: 'seed', secret: Buffer.from(seedFromMnemonic(made.mnemonic, '')) },
        key.derivationPath,
      ),
    );
    expect(Buffer.from(fromWords.publicKey).toString('base64')).toBe(key.publicKey);
  });

  test('deriving is idempotent, also at the same time; the key belongs to the user and to the organisation', async () => {
    const { id, userId, admin, officer, derive, base } = await organization();
    const race = await Promise.all(Array.from({ length: 4 }, () => derive()));
    expect(race.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201]);
    const [{ body: key } = { body: undefined }] = race;
    expect(new Set(race.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(key).toMatchObject({
      usage: 'Identity',
      status: 'Active',
      custodyMode: 'Custodial',
      userId,
      departmentId: 0,
    });
    const wallet = await client.call(officer, `GET /api/wallets/${key.derivedKeyId}`);
    expect(wallet.body).toMatchObject({
      ownerKind: 'Derived',
      owner: userId,
      organizationId: id,
      keyStatus: 'Active',
    });
    expect((await client.call(admin, `GET /api/wallets/${key.walletAddress}`)).status).toBe(200);
    const other = await derive({ departmentId: 2 ** 31 - 1, usage: 'ServiceAuth' });
    expect(other.status).toBe(201);
    const { body: page } = await client.call(admin, `GET ${base}/keys`);
    expect(page.totalCount).toBe(2);
    expect(page.items.map((one: { derivedKeyId: string }) => one.derivedKeyId).sort()).toEqual(
      [key.derivedKeyId, other.body.derivedKeyId].sort(),
    );
    expect((await client.call(officer, `GET ${base}/keys`)).status).toBe(403);
  });

  test('many requests at the same time leave one key of each name', async () => {
    const { admin, derive, base } = await organization();
    const departments = Array.from({ length: 12 }, (_none, department) => department);
    const requests = [...departments, ...departments, ...departments].map((departmentId) =>
      derive({ departmentId }),
    );
    const answers = await Promise.all(requests);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(departments.length);
    const { body: page } = await client.call(admin, `GET ${base}/keys`);
    expect(page.totalCount).toBe(departments.length);
  });

  test('only the user signs and reads, and only with a token of the organisation', async () => {
    const { id, userId, admin, officer, derive } = await organization();
    const { body: key } = await derive();
    const signed = await sign(officer, key.walletAddress);
    expect(signed).toMatchObject({
      status: 200,
      body: { publicKey: key.publicKey, keyAddress: key.walletAddress },
    });
    const { body: sealed } = await encrypt(officer, key.walletAddress);
    expect((await decrypt(officer, key.walletAddress, sealed.encryptedData)).body.data).toBe('secret');
    expect((await sign(admin, key.walletAddress)).status).toBe(403);
    expect((await decrypt(admin, key.walletAddress, sealed.encryptedData)).status).toBe(403);
    const elsewhere = person({ platformUserId: userId, organizationId: randomUUID() });
    client.callers.set('elsewhere', elsewhere);
    expect((await sign('elsewhere', key.walletAddress)).status).toBe(403);
    expect((await client.call('elsewhere', `GET /api/wallets/${key.walletAddress}`)).status).toBe(404);
    const listed = await client.call('elsewhere', 'GET /api/wallets');
    expect(listed.body.totalCount).toBe(0);
    for (const who of [officer, admin]) {
      const grant = await client.call(who, `POST /api/wallets/${key.walletAddress}/access`, {
        body: {
          subject: randomUUID(),
          accessRight: 'ReadWrite',
          allowedDerivationContexts: ['platform:register-attestation'],
        },
      });
      expect(grant).toMatchObject({ status: 403, body: { code: 'DERIVED_KEY_NOT_GRANTABLE' } });
    }
    const usable = async (organizationId: string | undefined) => {
      const subject = person({ platformUserId: userId, organizationId });
      const answer = await walletHandlers(replica.deps).listSubjectWallets(
        { $typeName: 'chancery.wallet.v1.ListSubjectWalletsRequest' },
        rpcContext('service-register', { subject }),
      );
      return answer.wallets?.map(({ walletAddress }) => walletAddress);
    };
    expect(await usable(id)).toEqual([key.walletAddress]);
    expect(await usable(undefined)).toEqual([]);
    await client.call(admin, `PATCH /api/wallets/${key.walletAddress}`, { body: { status: 'Locked' } });
    expect(await usable(id)).toEqual([]);
  });

  test('no raw path of a derived key reaches the seed of the organisation', async () => {
    const { admin, officer, derive, master } = await organization();
    const { body: key } = await derive();
    const primary = "m/44'/0'/0'/0'/0'";
    const raw = await sign(officer, key.walletAddress, { derivationPath: primary });
    expect(raw.body.publicKey).toBe(key.publicKey);
    const { body: wallet } = await client.call(admin, `GET /api/wallets/${master.walletAddress}`);
    for (const derivationPath of [primary, "m/44'/0'/0'/0'/100'", key.derivationPath, "m/0'"]) {
      const answer = await sign(officer, key.walletAddress, { derivationPath });
      expect(answer.status).toBe(200);
      expect(answer.body.publicKey).not.toBe(wallet.publicKey);
    }
    const stored = await replica.db.pool.query('SELECT purpose FROM wallet_secrets WHERE wallet_id = $1', [
      key.derivedKeyId,
    ]);
    expect(stored.rows).toEqual([{ purpose: 'node' }]);
  });

  test('a rotated key opens what it could and signs nothing; its successor signs', async () => {
    const { officer, derive, rotate, base, admin } = await organization();
    const { body: key } = await derive();
    const { body: sealed } = await encrypt(officer, key.walletAddress);
    const headers = { 'idempotency-key': 'r' };
    const rotated = await rotate(key.derivedKeyId, headers);
    expect(rotated).toMatchObject({
      status: 200,
      body: { previousKeyId: key.derivedKeyId, previousKeyStatus: 'Rotated' },
    });
    expect((await rotate(key.derivedKeyId, headers)).body).toEqual(rotated.body);
    expect(await sign(officer, key.walletAddress)).toMatchObject({
      status: 403,
      body: { code: 'KEY_ROTATED' },
    });
    expect((await decrypt(officer, key.walletAddress, sealed.encryptedData)).body.data).toBe('secret');
    expect((await sign(officer, rotated.body.walletAddress)).body.publicKey).toBe(rotated.body.publicKey);
    expect(await rotate(key.derivedKeyId)).toMatchObject({ status: 409, body: { code: 'KEY_NOT_ACTIVE' } });
    expect((await derive()).body.derivedKeyId).toBe(rotated.body.newDerivedKeyId);
    const { body: page } = await client.call(admin, `GET ${base}/keys`);
    expect(page.items.map((one: { status: string }) => one.status).sort()).toEqual(['Active', 'Rotated']);
    const locked = await client.call(admin, `PATCH /api/wallets/${key.walletAddress}`, {
      body: { status: 'Locked' },
    });
    expect(locked.body).toMatchObject({ status: 'Locked', keyStatus: 'Rotated' });
    await client.call(admin, `PATCH /api/wallets/${key.walletAddress}`, { body: { status: 'Active' } });
    expect((await sign(officer, key.walletAddress)).status).toBe(403);
  });

  test('of two rotations at the same time one is refused, and nothing is left of it', async () => {
    const { id, derive, rotate } = await organization();
    const { body: key } = await derive();
    const race = await Promise.all([rotate(key.derivedKeyId), rotate(key.derivedKeyId)]);
    expect(race.map(({ status }) => status).sort()).toEqual([200, 409]);
    const rows = await replica.db.pool.query(
      `SELECT k.key_index, w.key_status FROM derived_keys k JOIN wallets w USING (id)
       WHERE k.organization_id = $1 ORDER BY k.key_index`,
      [id],
    );
    expect(rows.rows).toEqual([
      { key_index: 0, key_status: 'Rotated' },
      { key_index: 1, key_status: 'Active' },
    ]);
  });

  test('a rotation that breaks off halfway has not happened', async () => {
    const { id, officer, derive, rotate } = await organization();
    const { body: key } = await derive();
    const trigger = (sqlText: string) => replica.db.pool.query(sqlText);
    await trigger(`CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'broken off'; END $$`);
    await trigger(
      `CREATE TRIGGER break_off BEFORE INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION break_off()`,
    );
    const headers = { 'idempotency-key': 'broken' };
    try {
      expect((await rotate(key.derivedKeyId, headers)).status).toBe(500);
    } finally {
      await trigger('DROP FUNCTION break_off CASCADE');
    }
    const rows = await replica.db.pool.query(
      'SELECT act FROM wallet_audit WHERE organization_id = $1 ORDER BY id',
      [id],
    );
    expect(rows.rows.map(({ act }) => act)).toEqual(['MasterKeyCreated', 'KeyDerived']);
    expect((await sign(officer, key.walletAddress)).status).toBe(200);
    expect((await rotate(key.derivedKeyId, headers)).status).toBe(200);
    expect((await sign(officer, key.walletAddress)).body.code).toBe('KEY_ROTATED');
  });

  test('a revoked key is locked for good; a repetition shows the first time; identity keys have an event', async () => {
    const { officer, admin, derive, revoke } = await organization();
    const { body: key } = await derive();
    const { body: office } = await derive({ usage: 'Governance' });
    const { body: sealed } = await encrypt(officer, key.walletAddress);
    const first = await revoke(key.derivedKeyId);
    expect(first).toMatchObject({ status: 200, body: { derivedKeyId: key.derivedKeyId, status: 'Revoked' } });
    replica.clock.advance(60_000);
    expect((await revoke(key.derivedKeyId)).body).toEqual(first.body);
    expect((await sign(officer, key.walletAddress)).status).toBe(423);
    expect((await decrypt(officer, key.walletAddress, sealed.encryptedData)).status).toBe(423);
    expect((await encrypt(officer, key.walletAddress)).status).toBe(423);
    for (const who of [officer, admin]) {
      const unlocked = await client.call(who, `PATCH /api/wallets/${key.walletAddress}`, {
        body: { status: 'Active' },
      });
      expect(unlocked).toMatchObject({ status: 409, body: { code: 'KEY_REVOKED' } });
    }
    await revoke(office.derivedKeyId);
    const events = await replica.db.transact((tx) =>
      sql<{ kind: string; data: object }>`SELECT kind, data FROM outbox WHERE key IN (${key.derivedKeyId},
        ${office.derivedKeyId}) ORDER BY sequence`.execute(tx),
    );
    expect(events.rows.map(({ kind }) => kind)).toEqual([
      'WalletCreated',
      'OrganizationWalletChanged',
      'WalletCreated',
      'OrganizationWalletChanged',
      'OrganizationWalletChanged',
      'WalletStatusChanged',
      'wallet.key.revoked',
      'OrganizationWalletChanged',
      'WalletStatusChanged',
    ]);
    expect(events.rows[6]?.data).toEqual({
      derivedKeyId: key.derivedKeyId,
      walletAddress: key.walletAddress,
      did: `did:platform:w:${key.walletAddress}`,
      revokedAt: first.body.revokedAt,
    });
    const next = await derive();
    expect(next.status).toBe(201);
    expect(next.body.derivationPath).toMatch(/\/1'$/);
    const [published] =
      (
        await encryptionHandlers(replica.deps).findEncryptionKeys(
          create(FindEncryptionKeysRequestSchema, { addresses: [key.walletAddress] }),
          rpcContext('service-blueprint'),
        )
      ).keys ?? [];
    expect(published?.status).toBe('Revoked');
  });

  test('malformed, foreign and unknown requests write no rows', async () => {
    const { base, admin, officer, derive, rotate, revoke, userId } = await organization();
    const poor = await organization({ withMaster: false });
    const { body: key } = await derive();
    const count = async () =>
      (await replica.db.pool.query('SELECT count(*) FROM wallet_audit')).rows[0].count;
    const before = await count();
    const refused = [
      [{ departmentId: 2 ** 31 }, 400, 'INVALID_REQUEST'],
      [{ departmentId: -1 }, 400, 'INVALID_REQUEST'],
      [{ departmentId: 0.5 }, 400, 'INVALID_REQUEST'],
      [{ usage: 'identity' }, 400, 'INVALID_REQUEST'],
      [{ userId: 'me' }, 400, 'INVALID_REQUEST'],
      [{ custodyMode: 'SelfCustodial' }, 422, 'CUSTODY_MODE_UNSUPPORTED'],
      [{ userId: randomUUID() }, 422, 'MEMBER_UNKNOWN'],
    ] as const;
    for (const [change, status, code] of refused) {
      expect(await derive(change)).toMatchObject({ status, body: { code } });
    }
    expect(await poor.derive()).toMatchObject({ status: 409, body: { code: 'MASTER_KEY_MISSING' } });
    const body = { userId, usage: 'Identity' };
    for (const who of [officer, poor.admin]) {
      expect((await client.call(who, `POST ${base}/derive-key`, { body })).status).toBe(403);
      expect((await client.call(who, `POST ${base}/keys/${key.derivedKeyId}/rotate`)).status).toBe(403);
      expect((await client.call(who, `DELETE ${base}/keys/${key.derivedKeyId}`)).status).toBe(403);
      expect((await client.call(who, `POST ${base}/master-key`)).status).toBe(403);
    }
    const theirs = `${poor.base}/keys/${key.derivedKeyId}`;
    expect((await client.call(poor.admin, `POST ${theirs}/rotate`)).status).toBe(404);
    expect((await client.call(poor.admin, `DELETE ${theirs}`)).status).toBe(404);
    expect((await rotate(randomUUID())).status).toBe(404);
    expect((await revoke(randomUUID())).status).toBe(404);
    expect((await client.call(admin, `POST ${base}/master-key`, { body: { keyType: 'RSA' } })).status).toBe(
      400,
    );
    expect(await count()).toBe(before);
  });

  test('a locked master key derives nothing, and a former member gets no successor', async () => {
    const { id, userId, admin, derive, rotate, master } = await organization();
    const { body: key } = await derive();
    const set = (status: string) =>
      client.call(admin, `PATCH /api/wallets/${master.walletAddress}`, { body: { status } });
    await set('Locked');
    expect((await derive({ usage: 'Governance' })).status).toBe(423);
    expect((await rotate(key.derivedKeyId)).status).toBe(423);
    await set('Active');
    replica.members.delete(`${id} ${userId}`);
    expect(await rotate(key.derivedKeyId)).toMatchObject({ status: 422, body: { code: 'MEMBER_UNKNOWN' } });
  });
});
