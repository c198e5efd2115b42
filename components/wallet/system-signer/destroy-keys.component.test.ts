import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { mountRoutes } from '../http.ts';
import { noHub, openFixture, person, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { controlKey, validatorKey } from './keys.ts';

const service = (clientId: string): Caller =>
  person({ kind: 'service', tier: 'service', clientId, platformUserId: undefined });
const callers: Readonly<Record<string, Caller>> = {
  operator: service('service-operator'),
  validator: service('validator-main-0'),
  alice: person(),
};

let replica: Replica & ReplicaOptions;
let app: App;

beforeAll(async () => {
  replica = await openFixture('wallet_destroy_keys');
  app = createHttpServer({ runtime: replica.runtime, title: 'wallet' });
  authPlugin(app, {
    async authenticate(token) {
      const caller = callers[token];
      if (caller === undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
      return caller;
    },
  });
  mountRoutes(app, replica.deps, noHub);
});

afterAll(async () => {
  await app.close();
  await replica.close();
});

const destroy = (validatorId: string, who = 'operator') =>
  app.inject({
    method: 'DELETE',
    url: `/api/internal/validator-keys/${validatorId}`,
    headers: { authorization: `Bearer ${who}` },
  });

async function secrets(): Promise<number | undefined> {
  const { rows } = await sql<{ count: number }>`SELECT count(*)::int AS count FROM wallet_secrets`.execute(
    replica.db.read as never,
  );
  return rows[0]?.count;
}

test('the keys of one validator and their secrets are deleted; others stay; a returning validator gets a new key', async () => {
  const [gone, other, control] = await Promise.all([
    validatorKey(replica.deps, 'validator-main-4'),
    validatorKey(replica.deps, 'validator-main-40'),
    controlKey(replica.deps),
  ]);
  const answer = await destroy('validator-main-4');
  expect([answer.statusCode, answer.json()]).toEqual([200, { destroyed: 1 }]);
  expect(await secrets()).toBe(2);
  expect((await validatorKey(replica.deps, 'validator-main-40')).address).toBe(other.address);
  expect((await controlKey(replica.deps)).address).toBe(control.address);
  expect((await destroy('validator-main-4')).json()).toEqual({ destroyed: 0 });
  expect((await validatorKey(replica.deps, 'validator-main-4')).address).not.toBe(gone.address);
});

test.each(['validator', 'alice'])('the caller %s may not destroy keys', async (who) => {
  const before = await secrets();
  expect((await destroy('validator-main-0', who)).statusCode).toBe(403);
  expect(await secrets()).toBe(before);
});

test.each(['register-control', 'validator-', 'validator-main-4%2F2', 'validator-%25'])(
  '%s is no validator',
  async (name) => {
    const before = await secrets();
    expect((await destroy(name)).statusCode).toBe(404);
    expect(await secrets()).toBe(before);
  },
);
