import { createPublicKey, randomBytes, randomUUID, verify } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { mountRoutes } from '../../http.ts';
import { walletHandlers } from '../../signing/rpc.ts';
import {
  administrator,
  noHub,
  openFixture,
  openReplica,
  person,
  type Replica,
  type ReplicaOptions,
  rpcContext,
} from '../../testing/fixture.ts';

function service(clientId: string): Caller {
  return person({ kind: 'service', tier: 'service', clientId, platformUserId: undefined });
}

describe('wallets of services', () => {
  const callers: Readonly<Record<string, Caller>> = {
    operator: service('service-operator'),
    register: service('service-register'),
    admin: administrator('11111111-1111-4111-8111-111111111111'),
    alice: person(),
  };
  let replica: Replica & ReplicaOptions;
  let second: Replica;
  let app: App;

  function appOf(of: Replica): App {
    const made = createHttpServer({ runtime: of.runtime, title: 'wallet' });
    authPlugin(made, {
      async authenticate(token) {
        const caller = callers[token];
        if (caller === undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
        return caller;
      },
    });
    mountRoutes(made, of.deps, noHub);
    return made;
  }

  beforeAll(async () => {
    replica = await openFixture('wallet_services');
    second = await openReplica(replica);
    app = appOf(replica);
  });
  afterAll(async () => {
    await app.close();
    await second.close();
    await replica.close();
  });

  const put = (name: string, who = 'operator', at = app) =>
    at.inject({
      method: 'PUT',
      url: `/api/internal/service-wallets/${name}`,
      headers: { authorization: `Bearer ${who}` },
      payload: {},
    });
  const handlers = () => walletHandlers(replica.deps);
  const sign = (walletAddress: string, who: string, derivationContext = '') => {
    const request = { walletAddress, digest: randomBytes(32), derivationContext };
    const subject = callers[who];
    return handlers().signDigest(
      request as never,
      rpcContext('service-register', subject === undefined ? {} : { subject }),
    );
  };

  test('a wallet of a name is created once, also by concurrent requests to two replicas', async () => {
    const other = appOf(second);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => put('registers', 'operator', index % 2 === 0 ? app : other)),
    );
    await other.close();
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
    const bodies = answers.map((answer) => answer.json());
    expect(new Set(bodies.map(({ walletAddress }) => walletAddress)).size).toBe(1);
    expect(bodies[0]).toMatchObject({ name: 'registers', algorithm: 'ED25519' });
    expect(Object.keys(bodies[0]).toSorted()).toEqual([
      'algorithm',
      'name',
      'publicKey',
      'walletAddress',
      'walletId',
    ]);
    replica.clock.advance(1);
    expect((await put('another')).json().walletAddress).not.toBe(bodies[0].walletAddress);
    const { rows } = await sql<{ count: number }>`
      SELECT count(*)::int AS count FROM wallet_secrets s JOIN wallets w ON w.id = s.wallet_id
      WHERE w.kind = 'Service'`.execute(replica.db.read as never);
    expect(rows[0]?.count).toBe(2);
  });

  test.each(['register', 'admin', 'alice'])('the caller %s gets none', async (who) => {
    const refused = await put('registers', who);
    expect([refused.statusCode, refused.json().code]).toEqual([403, 'FORBIDDEN']);
  });

  test('a malformed name is refused', async () => {
    for (const name of ['A', 'a_b', '-a', 'a'.repeat(64)]) expect((await put(name)).statusCode).toBe(404);
  });

  test('the owning service signs with them and attests with the primary key', async () => {
    const { walletAddress, publicKey } = (await put('registers')).json();
    const { key } = await sign(walletAddress, 'operator');
    expect(key).toMatchObject({ walletAddress, publicKey, algorithm: 'ED25519' });
    const found = await handlers().findAttestationKeys(
      { wallets: [walletAddress] } as never,
      rpcContext('service-register'),
    );
    expect(found.keys).toMatchObject([{ walletAddress, derivationContext: '', key: { walletAddress } }]);
    const digest = randomBytes(32);
    const signed = await handlers().signDigest(
      { walletAddress, digest, derivationContext: '' } as never,
      rpcContext('service-register', { subject: service('service-operator') }),
    );
    const { signature = new Uint8Array() } = signed;
    const raw = Buffer.concat([
      Buffer.from('302a300506032b6570032100', 'hex'),
      Buffer.from(publicKey, 'base64'),
    ]);
    const spki = createPublicKey({ key: raw, format: 'der', type: 'spki' });
    expect(verify(null, digest, spki, signature)).toBe(true);
  });

  test('they are listed for the owning service only', async () => {
    const { walletAddress } = (await put('registers')).json();
    const list = async (who: string) => {
      const subject = callers[who];
      const context = rpcContext('service-register', subject === undefined ? {} : { subject });
      const { wallets } = await handlers().listSubjectWallets({} as never, context);
      return (wallets ?? []).map((wallet) => wallet.walletAddress);
    };
    expect((await list('operator'))[0]).toBe(walletAddress);
    expect(await list('register')).toEqual([]);
    expect(await list('alice')).toEqual([]);
  });

  test('other services, people and administrators cannot sign with them', async () => {
    const { walletAddress } = (await put('registers')).json();
    await expect(sign(walletAddress, 'register')).rejects.toMatchObject({ code: 'PERSON_REQUIRED' });
    await expect(sign(walletAddress, 'alice')).rejects.toMatchObject({ code: 'WALLET_ACCESS_DENIED' });
    await expect(sign(walletAddress, 'admin')).rejects.toMatchObject({ code: 'WALLET_ACCESS_DENIED' });
    await expect(sign(walletAddress, 'unknown')).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  });

  test('the owning service can neither use system contexts nor grant access', async () => {
    const { walletAddress } = (await put('registers')).json();
    for (const path of [
      'platform:register-control',
      'platform:blueprint-publish',
      'platform:haip-issuer-signing',
      "m/44'/0'/0'/0'/101'",
      'm/44h/0h/0h/0h/106h',
    ]) {
      await expect(sign(walletAddress, 'operator', path)).rejects.toMatchObject({
        code: 'DERIVATION_CONTEXT_RESERVED',
      });
    }
    const refused = await app.inject({
      method: 'POST',
      url: `/api/wallets/${walletAddress}/access`,
      headers: { authorization: 'Bearer operator' },
      payload: { subject: randomUUID(), accessRight: 'ReadWrite' },
    });
    expect([refused.statusCode, refused.json().code]).toEqual([403, 'PERSON_REQUIRED']);
  });

  test('they have no events in the log', async () => {
    await put('registers');
    const { rows } = await sql<{ count: number }>`SELECT count(*)::int AS count FROM outbox`.execute(
      replica.db.read as never,
    );
    expect(rows[0]?.count).toBe(0);
  });
});
