import { createHash, createPublicKey, randomBytes, randomUUID, verify } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller } from '#core/identity/claims.ts';
import {
  administrator,
  openFixture,
  person,
  type Replica,
  type ReplicaOptions,
} from '../../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../../testing/http-client.ts';

let replica: Replica & ReplicaOptions;
let client: HttpClient;
const own = person();

function service(clientId: string, change: Partial<Caller> = {}): Caller {
  return person({ kind: 'service', tier: 'service', clientId, platformUserId: undefined, ...change });
}

/** The delegation of a token that acts for a person. */
function delegationOf({ platformUserId }: Caller): Caller['delegation'] {
  return { userId: 'u', platformUserId, organizationId: undefined, roles: [], sessionId: undefined };
}

beforeAll(async () => {
  replica = await openFixture('wallet_issuer');
  client = createHttpClient(replica);
  client.callers
    .set('tenant', service('service-tenant'))
    .set('credential', service('service-credential'))
    .set('register', service('service-register'))
    .set('operator', service('service-operator'))
    .set('delegated', service('service-credential', { delegation: delegationOf(own) }))
    .set('own', own);
});

afterAll(async () => {
  await client.close();
  await replica.close();
});

/** A wallet of a new organisation. */
async function organizationWallet(keyType: string) {
  const organizationId = randomUUID();
  const who = `admin ${organizationId}`;
  client.callers.set(who, administrator(organizationId));
  return { who, organizationId, wallet: await client.made(who, keyType, { organizationId }) };
}

const pathOf = (address: string) => `/api/internal/wallets/${address}/issuer-cert-key`;

describe.each([
  ['NISTP256', 'Primary'],
  ['ED25519', 'HaipCoKey'],
])('the certificate key of an organisation with a wallet of %s', (keyType, boundKeySource) => {
  test('is P-256, always the same, and signs digests that OpenSSL verifies', async () => {
    const { wallet } = await organizationWallet(keyType);
    const path = pathOf(wallet.walletAddress);
    const got = await client.call('tenant', `GET ${path}`);
    expect([got.status, got.body.boundKeySource]).toEqual([200, boundKeySource]);
    expect(got.body.publicKeySpki === wallet.publicKey).toBe(keyType === 'NISTP256');
    expect((await client.call('credential', `GET ${path}`)).body).toEqual(got.body);
    const spki = Buffer.from(got.body.publicKeySpki, 'base64');
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
    expect(key.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
    expect(got.body.thumbprint).toBe(await calculateJwkThumbprint(key.export({ format: 'jwk' })));
    const data = randomBytes(100);
    const digest = createHash('sha256').update(data).digest('base64');
    const signed = await client.call('credential', `POST ${path}/sign`, { body: { digest } });
    expect(signed.status).toBe(200);
    const signature = Buffer.from(signed.body.signature, 'base64');
    expect(signature).toHaveLength(64);
    expect(verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
  });

  test('is not the key that the administrators sign with', async () => {
    const { who, wallet } = await organizationWallet(keyType);
    const { body } = await client.call('tenant', `GET ${pathOf(wallet.walletAddress)}`);
    for (const derivationPath of ['platform:haip-issuer-signing', "m/44'/0'/0'/0'/106'"]) {
      const refused = await client.call(who, `POST /api/wallets/${wallet.id}/sign`, {
        body: { data: body.publicKeySpki, algorithm: keyType, derivationPath },
      });
      expect(refused.status).toBe(403);
    }
  });
});

describe.each(['NISTP256', 'ED25519'])('the keys of other uses of a wallet of %s', (keyType) => {
  const uses = [
    ['issuer', ['tenant', 'credential']],
    ['root', ['tenant']],
    ['status-list', ['credential']],
  ] as const;

  test('differ, and each signs for its services alone', async () => {
    const { wallet } = await organizationWallet(keyType);
    const path = pathOf(wallet.walletAddress);
    const keys = new Set<string>();
    for (const [use, users] of uses) {
      const data = randomBytes(100);
      const body = { use, digest: createHash('sha256').update(data).digest('base64') };
      for (const caller of ['tenant', 'credential', 'register', 'delegated']) {
        const [got, signed] = [
          await client.call(caller, `GET ${path}?use=${use}`),
          await client.call(caller, `POST ${path}/sign`, { body }),
        ];
        if (!users.some((user) => user === caller)) {
          expect([got.status, signed.status], `${caller} ${use}`).toEqual([403, 403]);
          continue;
        }
        keys.add(got.body.publicKeySpki);
        const spki = Buffer.from(got.body.publicKeySpki, 'base64');
        const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
        expect(key.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
        const signature = Buffer.from(signed.body.signature, 'base64');
        expect(verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
        if (use !== 'issuer') expect(got.body.boundKeySource).toBe('CoKey');
      }
    }
    expect(keys.size).toBe(3);
    for (const derivationPath of ['platform:tenant-ca-signing', 'platform:status-list-signing']) {
      const refused = await client.call('own', `POST /api/wallets/${wallet.id}/sign`, {
        body: { data: 'AA==', algorithm: keyType, derivationPath },
      });
      expect(refused.status).toBe(403);
    }
  });

  test('belong to the organisation that the request names', async () => {
    const [own, other] = [await organizationWallet(keyType), await organizationWallet(keyType)];
    const path = pathOf(own.wallet.walletAddress);
    const digest = randomBytes(32).toString('base64');
    for (const use of ['issuer', 'root']) {
      const of = (organizationId: string) => `GET ${path}?use=${use}&organizationId=${organizationId}`;
      expect((await client.call('tenant', of(own.organizationId))).status).toBe(200);
      for (const organizationId of [other.organizationId, randomUUID()]) {
        const got = await client.call('tenant', of(organizationId));
        expect([got.status, got.body.code]).toEqual([404, 'WALLET_NOT_FOUND']);
        const body = { use, organizationId, digest };
        expect((await client.call('tenant', `POST ${path}/sign`, { body })).status).toBe(404);
      }
    }
    const unknown = await client.call('tenant', `GET ${path}?use=primary`);
    expect([unknown.status, unknown.body.code]).toEqual([400, 'INVALID_REQUEST']);
  });
});

test('an earlier wallet of an organisation signs none of its certificates', async () => {
  const { wallet, organizationId } = await organizationWallet('ED25519');
  await replica.db.transact((tx) =>
    sql`UPDATE wallets SET replaced_at = now() WHERE id = ${wallet.id}`.execute(tx),
  );
  const path = `${pathOf(wallet.walletAddress)}?organizationId=${organizationId}`;
  expect((await client.call('tenant', `GET ${path}`)).body.code).toBe('WALLET_NOT_FOUND');
});

test('other services, delegated tokens and people get neither key nor signature', async () => {
  const { who, wallet } = await organizationWallet('NISTP256');
  const path = pathOf(wallet.walletAddress);
  const body = { digest: randomBytes(32).toString('base64') };
  for (const caller of ['register', 'operator', 'delegated', 'own', who]) {
    const got = await client.call(caller, `GET ${path}`);
    expect([got.status, got.body.code], caller).toEqual([403, 'FORBIDDEN']);
    expect((await client.call(caller, `POST ${path}/sign`, { body })).status).toBe(403);
  }
  expect((await client.call('unknown', `GET ${path}`)).status).toBe(401);
  expect((await client.call('register', `GET ${pathOf('w1nothing')}`)).status).toBe(403);
});

test('wallets of people and of services have none, nor has an unknown one', async () => {
  const wallets = await Promise.all(['NISTP256', 'RSA'].map((keyType) => client.made('own', keyType)));
  const made = await client.call('operator', 'PUT /api/internal/service-wallets/registers');
  for (const address of [...wallets.map(({ walletAddress }) => walletAddress), made.body.walletAddress]) {
    const refused = await client.call('tenant', `GET ${pathOf(address)}`);
    expect([refused.status, refused.body.code]).toEqual([422, 'CERT_KEY_NOT_ELIGIBLE']);
    const body = { digest: randomBytes(32).toString('base64') };
    expect((await client.call('tenant', `POST ${pathOf(address)}/sign`, { body })).status).toBe(422);
  }
  expect((await client.call('tenant', `GET ${pathOf('w1nothing')}`)).body.code).toBe('WALLET_NOT_FOUND');
  const { rows } = await replica.db.transact((tx) =>
    sql<{ address: string }>`SELECT address FROM wallets WHERE kind = 'System'`.execute(tx),
  );
  for (const { address } of rows) {
    expect((await client.call('tenant', `GET ${pathOf(address)}`)).status).toBe(404);
  }
});

test('a digest has 32 bytes, and a locked or deleted wallet signs none', async () => {
  const { wallet } = await organizationWallet('ED25519');
  const path = `${pathOf(wallet.walletAddress)}/sign`;
  for (const [digest, code] of [
    [randomBytes(31).toString('base64'), 'PREHASH_LENGTH'],
    [randomBytes(33).toString('base64'), 'PREHASH_LENGTH'],
    ['', 'PREHASH_LENGTH'],
    ['%%%', 'INVALID_BASE64'],
    ['A'.repeat(65), 'INVALID_REQUEST'],
  ] as const) {
    const refused = await client.call('tenant', `POST ${path}`, { body: { digest } });
    expect([refused.status, refused.body.code]).toEqual([400, code]);
  }
  const body = { digest: randomBytes(32).toString('base64') };
  for (const [state, code] of [
    ['Locked', 'WALLET_LOCKED'],
    ['Deleted', 'WALLET_DELETED'],
  ] as const) {
    await replica.db.transact((tx) =>
      sql`UPDATE wallets SET status = ${state} WHERE id = ${wallet.id}`.execute(tx),
    );
    expect((await client.call('tenant', `POST ${path}`, { body })).body.code).toBe(code);
  }
});
