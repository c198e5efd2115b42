import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer, grant, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';

const dayMs = 86_400_000;

describe('signing keys', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_keys', { CHANCERY_SIGNING_KEY_ROTATION_DAYS: '1' });
  });
  afterAll(() => tenant.stop());
  const published = async (): Promise<string[]> => {
    const answer = await tenant.app.inject({ url: '/.well-known/jwks.json' });
    expect(answer.headers['cache-control']).toContain('max-age=300');
    return answer.json().keys.map((key: { kid: string }) => key.kid);
  };
  const kidOf = (token: string) => String(decodeProtectedHeader(token).kid);
  const me = async (token: string) =>
    (await tenant.app.inject({ url: '/api/auth/me', headers: bearer(token) })).statusCode;

  it('are the same on every replica, also when replicas start concurrently', async () => {
    const replicas = await Promise.all(
      [1, 2].map(() => startReplica({ ...tenant.files, remove: async () => {} })),
    );
    for (const replica of replicas) {
      expect(replica.keys.current().kid).toBe(tenant.keys.current().kid);
      await replica.stop();
    }
  });

  it('rotate on schedule: the next key was published before, the old one stays for nine hours', async () => {
    const [before] = [await published()];
    const old = (await grant(tenant)).access_token;
    tenant.clock.advance(dayMs - 60_000);
    const late = (await grant(tenant)).access_token;
    expect(kidOf(late)).toBe(kidOf(old));
    tenant.clock.advance(60_001);
    await tenant.keys.refresh();
    const after = await published();
    expect(after).toHaveLength(3);
    expect(after).toEqual(expect.arrayContaining(before));
    const fresh = (await grant(tenant)).access_token;
    expect(kidOf(fresh)).not.toBe(kidOf(old));
    expect(before).toContain(kidOf(fresh));
    await expect.poll(() => me(late)).toBe(200);
    expect(await me(fresh)).toBe(200);
    tenant.clock.advance(9 * 3_600_000);
    await tenant.keys.refresh();
    expect(await published()).not.toContain(kidOf(old));
  });

  it('are encrypted in the database, and the service does not start with another protection key', async () => {
    const rows = await tenant.db.read.selectFrom('signing_keys').selectAll().execute();
    for (const row of rows) expect(row.sealed_private_key.includes('BEGIN')).toBe(false);
    const path = join(tenant.files.directory, 'other-key');
    await writeFile(path, randomBytes(32));
    const env = { ...tenant.files.env, CHANCERY_PROTECTION_KEY_FILE: path };
    await expect(startReplica({ ...tenant.files, env })).rejects.toMatchObject({
      code: 'PROTECTION_KEY_MISMATCH',
    });
  });

  it('describe the routes in OpenAPI 3.1', async () => {
    for (const app of [tenant.app, tenant.internal]) {
      const { openapi, paths } = (await app.inject({ url: '/openapi.json' })).json();
      expect(openapi).toBe('3.1.0');
      expect(Object.keys(paths).length).toBeGreaterThan(2);
    }
  });
});
