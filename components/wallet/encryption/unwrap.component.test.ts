import { randomBytes, randomUUID } from 'node:crypto';
import { getHeapSnapshot } from 'node:v8';
import { create } from '@bufbuild/protobuf';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseKeysUnwrapped } from '#core/events/key-use-events.ts';
import type { Caller } from '#core/identity/claims.ts';
import {
  type UnwrapKeysResponse,
  UnwrapKeysResponseSchema,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { administrator, openFixture, person, type Replica, rpcContext } from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';
import { type FoundKey, openWith, recipientsOf, sealFor, type Wrapped } from '../testing/jwe-recipients.ts';
import { encryptionHandlers } from './rpc.ts';

const PAYLOAD = 'platform:payload-encryption';
const SERVICE = 'service-blueprint';

describe('content keys for encrypted workflows', () => {
  const alice = person({ organizationId: randomUUID() });
  let replica: Replica;
  let client: HttpClient;

  beforeAll(async () => {
    replica = await openFixture('wallet_unwrap');
    client = createHttpClient(replica);
    client.callers.set('alice', alice);
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  const context = (subject?: Caller) => rpcContext(SERVICE, subject === undefined ? {} : { subject });

  async function keysOf(...addresses: string[]): Promise<FoundKey[]> {
    const { keys = [] } = await encryptionHandlers(replica.deps).findEncryptionKeys(
      { addresses } as never,
      context(),
    );
    return keys;
  }

  async function unwrap(
    wallet: string,
    keys: readonly Wrapped[],
    subject: Caller | undefined = alice,
    deps = replica.deps,
  ): Promise<UnwrapKeysResponse['keys']> {
    const answer = await encryptionHandlers(deps).unwrapKeys({ wallet, keys } as never, context(subject));
    return create(UnwrapKeysResponseSchema, answer).keys;
  }

  const keyIn = ({ result }: UnwrapKeysResponse['keys'][number] = { result: {} } as never) =>
    result.case === 'contentKey' ? result.value : new Uint8Array();
  const casesOf = (keys: UnwrapKeysResponse['keys']) =>
    keys.map(({ result }) => (result.case === 'refusal' ? result.value : result.case));

  async function unwrapEvents() {
    const { rows } = await sql<{ kind: string; data: unknown }>`
      SELECT kind, data FROM outbox WHERE kind = 'WalletKeysUnwrapped' ORDER BY sequence`.execute(
      replica.db.read as never,
    );
    return rows.map(({ kind, data }) => parseKeysUnwrapped(kind, data));
  }

  test('the key for content is that of slot 110, of RSA the only one; unknown addresses are left out', async () => {
    const made = await Promise.all(['ED25519', 'NISTP256', 'RSA'].map((type) => client.made('alice', type)));
    const addresses = [...made.map(({ walletAddress }) => walletAddress), 'w1unknown'];
    const found = await keysOf(...addresses);
    const expected = made.map(({ walletAddress, encryptionPublicKey, publicKey, keyType }) => ({
      walletAddress,
      kid: keyType === 'RSA' ? walletAddress : `${walletAddress}#${PAYLOAD}`,
      algorithm: { ED25519: 'X25519', NISTP256: 'NISTP256', RSA: 'RSA-4096' }[keyType as 'RSA'],
      publicKey: encryptionPublicKey ?? publicKey,
      status: 'Active',
    }));
    const byAddress = (a: object, b: object) => JSON.stringify(a).localeCompare(JSON.stringify(b));
    expect(found.toSorted(byAddress)).toEqual(expected.toSorted(byAddress));
    await expect(keysOf(...Array.from({ length: 257 }, () => 'w1'))).rejects.toMatchObject({
      kind: 'invalid',
    });
    const [first] = made;
    await replica.db.pool.query(`UPDATE wallets SET status = 'Locked' WHERE id = $1`, [first.id]);
    expect(await keysOf(first.walletAddress)).toMatchObject([{ status: 'Locked' }]);
  });

  test.each([
    ['ED25519', {}],
    ['NISTP256', {}],
    ['RSA', {}],
    ['ED25519', { apu: Buffer.from('Alice'), apv: Buffer.from('Bob') }],
    ['NISTP256', { apu: Buffer.from('Alice'), apv: randomBytes(64) }],
  ] as const)(
    '%s: what jose wraps is unwrapped, by the person and by a delegated service',
    async (keyType, parties) => {
      const wallet = await client.made('alice', keyType);
      const jwe = await sealFor(await keysOf(wallet.walletAddress), 'Grüße, 世界', parties);
      const delegated = delegatedToken(alice);
      for (const subject of [alice, delegated]) {
        const [answer] = await unwrap(wallet.walletAddress, recipientsOf(jwe), subject);
        expect(openWith(keyIn(answer), jwe)).toBe('Grüße, 世界');
      }
    },
  );

  test('a batch opens the seed once and gives each key its own answer, in order', async () => {
    const wallet = await client.made('alice', 'NISTP256');
    const other = await client.made('alice', 'NISTP256');
    const [found] = await keysOf(wallet.walletAddress);
    const primary = { kid: wallet.walletAddress, algorithm: 'NISTP256', publicKey: wallet.publicKey };
    const jwes = await Promise.all([
      sealFor([found ?? {}], 'one'),
      sealFor([primary], 'two'),
      sealFor(await keysOf(other.walletAddress), 'three'),
    ]);
    const [one, two, foreign] = jwes.flatMap(recipientsOf) as [Wrapped, Wrapped, Wrapped];
    const flipped = Buffer.from(one.encryptedKey);
    flipped[7] = (flipped[7] ?? 0) ^ 1;
    const epk = one.epk ?? { crv: '', x: new Uint8Array(), y: new Uint8Array() };
    const broken: Wrapped[] = [
      foreign,
      { ...one, kid: '' },
      { ...one, kid: wallet.walletAddress },
      { ...one, alg: 'ECDH-ES' },
      { ...one, alg: 'RSA-OAEP-256' },
      { ...one, epk: undefined },
      { ...one, epk: { ...epk, crv: 'X25519' } },
      { ...one, epk: { ...epk, y: epk.x } },
      { ...one, epk: { ...epk, x: new Uint8Array(31) } },
      { ...one, apu: Buffer.from('x') },
      { ...one, apv: Buffer.alloc(1_025) },
      { ...one, encryptedKey: flipped },
      { ...one, encryptedKey: one.encryptedKey.subarray(0, 32) },
      { ...one, encryptedKey: new Uint8Array() },
    ];
    let opened = 0;
    const { keyring } = replica.deps;
    const deps = {
      ...replica.deps,
      keyring: {
        privateKeys: (...parameters: Parameters<typeof keyring.privateKeys>) => {
          opened += 1;
          return keyring.privateKeys(...parameters);
        },
      },
    };
    const earlier = (await unwrapEvents()).length;
    const batch = [one, ...broken, two, one];
    const answers = await unwrap(wallet.id, batch, alice, deps as never);
    expect(casesOf(answers)).toEqual([
      'contentKey',
      ...broken.map(() => 'DECRYPT_FAILED'),
      'contentKey',
      'contentKey',
    ]);
    expect(openWith(keyIn(answers[0]), jwes[0])).toBe('one');
    expect(openWith(keyIn(answers.at(-2)), jwes[1])).toBe('two');
    expect(opened).toBe(1);
    expect((await unwrapEvents()).slice(earlier)).toMatchObject([
      {
        address: wallet.walletAddress,
        walletId: wallet.id,
        organizationId: alice.organizationId,
        platformUserId: alice.platformUserId,
        service: SERVICE,
        requested: batch.length,
        unwrapped: 3,
      },
    ]);
  });

  test('a batch holds one to 256 keys', async () => {
    const wallet = await client.made('alice');
    const [one] = recipientsOf(await sealFor(await keysOf(wallet.walletAddress), 'x')) as [Wrapped];
    expect(
      await unwrap(
        wallet.id,
        Array.from({ length: 256 }, () => one),
      ),
    ).toHaveLength(256);
    for (const keys of [[], Array.from({ length: 257 }, () => one)]) {
      await expect(unwrap(wallet.id, keys)).rejects.toMatchObject({ kind: 'invalid' });
    }
  });

  test('without a committed event there is no answer', async () => {
    const wallet = await client.made('alice');
    const jwe = await sealFor(await keysOf(wallet.walletAddress), 'x');
    const failing = {
      ...replica.deps,
      db: {
        ...replica.db,
        read: replica.db.read,
        transact: () => Promise.reject(new Error('the database is away')),
      },
    };
    const earlier = (await unwrapEvents()).length;
    await expect(unwrap(wallet.id, recipientsOf(jwe), alice, failing as never)).rejects.toThrow(
      'the database is away',
    );
    expect(await unwrapEvents()).toHaveLength(earlier);
  });

  test('content keys are wiped once the answer is encoded, and are in no log line and no text of the heap', async () => {
    const wallet = await client.made('alice');
    const jwe = await sealFor(await keysOf(wallet.walletAddress), 'x');
    const answer = await encryptionHandlers(replica.deps).unwrapKeys(
      { wallet: wallet.id, keys: recipientsOf(jwe) } as never,
      context(alice),
    );
    const contentKey = Buffer.from(keyIn(create(UnwrapKeysResponseSchema, answer).keys[0]));
    expect(openWith(contentKey, jwe)).toBe('x');
    (answer as Partial<Disposable>)[Symbol.dispose]?.();
    expect(Buffer.from(keyIn(create(UnwrapKeysResponseSchema, answer).keys[0]))).toEqual(Buffer.alloc(32));
    const logged = JSON.stringify(replica.runtime.lines);
    const snapshot = await heapSnapshot();
    expect(snapshot.includes(wallet.walletAddress)).toBe(true);
    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      const written = contentKey.toString(encoding);
      expect(logged).not.toContain(written);
      expect(snapshot.includes(written), encoding).toBe(false);
    }
  });

  async function heapSnapshot(): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of getHeapSnapshot()) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks);
  }

  test('other people, a call without a subject and a locked wallet are refused and leave no event', async () => {
    const wallet = await client.made('alice');
    const keys = recipientsOf(await sealFor(await keysOf(wallet.walletAddress), 'x'));
    const earlier = (await unwrapEvents()).length;
    await expect(unwrap(wallet.id, keys, person())).rejects.toMatchObject({ code: 'WALLET_ACCESS_DENIED' });
    await expect(
      encryptionHandlers(replica.deps).unwrapKeys({ wallet: wallet.id, keys } as never, context()),
    ).rejects.toMatchObject({ kind: 'unauthenticated' });
    await expect(unwrap(randomUUID(), keys)).rejects.toMatchObject({ code: 'WALLET_NOT_FOUND' });
    await replica.db.pool.query(`UPDATE wallets SET status = 'Locked' WHERE id = $1`, [wallet.id]);
    await expect(unwrap(wallet.id, keys)).rejects.toMatchObject({ kind: 'locked', code: 'WALLET_LOCKED' });
    expect(await unwrapEvents()).toHaveLength(earlier);
  });

  test('a member reads for an organisation under a grant that names the context, with that key alone', async () => {
    const organizationId = randomUUID();
    client.callers.set('admin', administrator(organizationId));
    const wallet = await client.made('admin', 'ED25519', { organizationId });
    const officer = person({ organizationId, roles: ['User'] });
    const keys = recipientsOf(await sealFor(await keysOf(wallet.walletAddress), 'x'));
    await expect(unwrap(wallet.id, keys, officer)).rejects.toMatchObject({ code: 'WALLET_ACCESS_DENIED' });
    const grant = {
      subject: officer.platformUserId,
      accessRight: 'ReadWrite',
      allowedDerivationContexts: [PAYLOAD],
    };
    const granted = await client.call('admin', `POST /api/wallets/${wallet.id}/access`, { body: grant });
    expect(granted.status).toBe(201);
    const primary = keys.map((key) => ({ ...key, kid: wallet.walletAddress }));
    for (const subject of [officer, delegatedToken(officer)]) {
      const answers = await unwrap(wallet.id, [...keys, ...primary], subject);
      expect(casesOf(answers)).toEqual(['contentKey', 'WALLET_ACCESS_DENIED']);
    }
    const elsewhere = { ...officer, organizationId: randomUUID() };
    await expect(unwrap(wallet.id, keys, elsewhere)).rejects.toMatchObject({
      code: 'WALLET_ACCESS_DENIED',
    });
    expect((await unwrapEvents()).at(-1)).toMatchObject({ organizationId, requested: 2, unwrapped: 1 });
  });

  test('nothing is encrypted for a locked wallet; text may hold any character of Unicode', async () => {
    const wallet = await client.made('alice');
    const encrypt = (data: string) =>
      client.call('alice', `POST /api/wallets/${wallet.id}/encrypt`, {
        body: { data, recipientWalletId: wallet.id },
      });
    for (const text of ['', 'a\0b', '\0', '\u{10ffff}\ufffe']) {
      const { encryptedData } = (await encrypt(text)).body;
      const body = { encryptedData };
      const opened = await client.call('alice', `POST /api/wallets/${wallet.id}/decrypt`, { body });
      expect(opened).toMatchObject({ status: 200, body: { data: text } });
    }
    expect((await encrypt('\ud800')).status).toBe(400);
    await replica.db.pool.query(`UPDATE wallets SET status = 'Locked' WHERE id = $1`, [wallet.id]);
    expect(await encrypt('x')).toMatchObject({ status: 423, body: { code: 'WALLET_LOCKED' } });
  });

  function delegatedToken(caller: Caller): Caller {
    return person({
      kind: 'service',
      tier: 'service',
      clientId: SERVICE,
      platformUserId: undefined,
      scopes: ['wallets:sign', 'wallets:decrypt'],
      delegation: {
        userId: caller.subject,
        platformUserId: caller.platformUserId,
        organizationId: caller.organizationId,
        roles: caller.roles,
        sessionId: caller.sessionId,
      },
    });
  }
});
