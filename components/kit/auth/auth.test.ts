import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { calculateJwkThumbprint, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { callerOf, parseAccessClaims } from '#core/identity/claims.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { authPlugin, createAuthenticator, givenKeys, remoteKeys } from './auth.ts';

const startMs = 1_800_000_000_000;
const issuer = `urn:platform:${testInstallation}`;

interface Signer {
  readonly keyId: string;
  readonly privateKey: KeyObject;
  readonly jwk: Record<string, unknown>;
}

async function newSigner(): Promise<Signer> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = publicKey.export({ format: 'jwk' });
  const keyId = await calculateJwkThumbprint(jwk);
  return { keyId, privateKey, jwk: { ...jwk, kid: keyId, alg: 'ES256', use: 'sig' } };
}

interface TokenShape {
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly signer?: Signer;
}

const quiet = { isRevoked: () => false, assertFresh: () => undefined };

describe('restricted tokens', () => {
  const open = async (due: object) => {
    const app = createHttpServer({ runtime: testRuntime('restricted'), title: 'Restricted' });
    const seconds = Math.floor(startMs / 1000);
    const caller = callerOf(
      parseAccessClaims({
        iss: issuer,
        aud: [`${testInstallation}:consumer`],
        sub: 'identity-1',
        iat: seconds,
        exp: seconds + 3600,
        jti: randomUUID(),
        token_type: 'user',
        token_use: 'access',
        tier: 'consumer',
        client_id: 'first-party',
        platform_user_id: 'person-1',
        ...due,
      }),
      testInstallation,
    );
    authPlugin(app, { authenticate: async () => caller });
    const policy = 'RequireAuthenticated';
    const reply = async () => ({ passed: true });
    const schema = { hide: true };
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE'] as const) {
      app.route({
        method,
        url: '/plain',
        schema,
        config: { policy },
        exposeHeadRoute: false,
        handler: reply,
      });
      for (const admitted of ['profile', 'password'] as const) {
        const config = { policy, admits: [admitted] } as const;
        app.route({ method, url: `/${admitted}`, schema, config, exposeHeadRoute: false, handler: reply });
      }
    }
    app.get('/hub', { schema, config: { policy, hub: true } }, reply);
    app.post('/optional', { schema, config: { policy: 'Anonymous', optionalToken: true } }, reply);
    app.get('/strangers', { schema, config: { policy: 'Anonymous' } }, reply);
    return async (method: 'GET' | 'HEAD' | 'POST' | 'DELETE', url: string) => {
      const answer = await app.inject({ method, url, headers: { authorization: 'Bearer t' } });
      return method === 'HEAD' || answer.statusCode === 200 ? answer.statusCode : answer.json().code;
    };
  };

  it('of an incomplete profile pass the routes that admit it, and nothing else', async () => {
    const ask = await open({ profile_completed: false });
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      expect(await ask(method, '/plain')).toBe('PROFILE_INCOMPLETE');
      expect(await ask(method, '/password')).toBe('PROFILE_INCOMPLETE');
      expect(await ask(method, '/profile')).toBe(200);
    }
    expect(await ask('HEAD', '/plain')).toBe(403);
    expect(await ask('GET', '/hub')).toBe('PROFILE_INCOMPLETE');
    expect(await ask('POST', '/optional')).toBe('PROFILE_INCOMPLETE');
    expect(await ask('GET', '/strangers')).toBe(200);
  });

  it('of a password that others know read, and write where it is admitted', async () => {
    const ask = await open({ password_change_required: true });
    for (const url of ['/plain', '/profile', '/password']) {
      expect(await ask('GET', url)).toBe(200);
      expect(await ask('HEAD', url)).toBe(200);
    }
    for (const method of ['POST', 'DELETE'] as const) {
      expect(await ask(method, '/plain')).toBe('PASSWORD_CHANGE_REQUIRED');
      expect(await ask(method, '/profile')).toBe('PASSWORD_CHANGE_REQUIRED');
      expect(await ask(method, '/password')).toBe(200);
    }
    expect(await ask('GET', '/hub')).toBe('PASSWORD_CHANGE_REQUIRED');
    expect(await ask('POST', '/optional')).toBe('PASSWORD_CHANGE_REQUIRED');
  });

  it('are those of people who have something to do first', async () => {
    const ask = await open({ profile_completed: true });
    expect(await ask('POST', '/plain')).toBe(200);
    expect(await ask('GET', '/hub')).toBe(200);
  });
});

describe('authenticator', () => {
  let signer: Signer;
  let clock: ManualClock;
  beforeAll(async () => {
    signer = await newSigner();
  });

  const seconds = () => Math.floor(clock.nowMs() / 1000);
  const tokenOf = async (shape: TokenShape = {}): Promise<string> => {
    const by = shape.signer ?? signer;
    const claims = {
      iss: issuer,
      aud: [`${testInstallation}:platform`],
      sub: 'identity-1',
      iat: seconds(),
      nbf: seconds(),
      exp: seconds() + 3600,
      jti: randomUUID(),
      token_type: 'user',
      token_use: 'access',
      tier: 'platform',
      client_id: 'first-party',
      platform_user_id: 'person-1',
      org_id: 'org-1',
      roles: ['Administrator'],
      sid: 'family-1',
      ...shape.claims,
    };
    return await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: by.keyId, ...shape.header })
      .sign(by.privateKey);
  };
  const make = (revocations: typeof quiet = quiet) => {
    clock = manualClock(startMs);
    const jwks = { keys: [signer.jwk] };
    return createAuthenticator({
      installation: testInstallation,
      keys: givenKeys(() => jwks),
      revocations,
      clock,
    });
  };

  it('accepts a token of this installation', async () => {
    const authenticator = make();
    const caller = await authenticator.authenticate(await tokenOf());
    expect(caller).toMatchObject({
      kind: 'user',
      subject: 'identity-1',
      platformUserId: 'person-1',
      tier: 'platform',
      roles: ['Administrator'],
      sessionId: 'family-1',
    });
  });

  it('tolerates 30 s of skew and no more', async () => {
    const authenticator = make();
    const token = await tokenOf();
    clock.advance(3_629_000);
    await authenticator.authenticate(token);
    clock.advance(1_000);
    await expect(authenticator.authenticate(token)).rejects.toMatchObject({ kind: 'unauthenticated' });
    const early = await tokenOf({ claims: { nbf: seconds() + 29, iat: seconds() + 29 } });
    await authenticator.authenticate(early);
  });

  const bad: Record<string, () => TokenShape> = {
    'an expired token': () => ({ claims: { exp: seconds() - 31 } }),
    'a token from the future': () => ({ claims: { iat: seconds() + 31 } }),
    'a token that is not yet valid': () => ({ claims: { nbf: seconds() + 31 } }),
    'a token without expiry': () => ({ claims: { exp: undefined } }),
    'another issuer': () => ({ claims: { iss: 'urn:platform:other' } }),
    'another installation’s audience': () => ({ claims: { aud: ['other:platform'] } }),
    'the audience of another tier': () => ({ claims: { aud: [`${testInstallation}:service`] } }),
    'the audience of an enrolment': () => ({ claims: { aud: [`${testInstallation}:enrol-session`] } }),
    'a refresh token': () => ({ claims: { token_use: 'refresh' } }),
    'typ JWT': () => ({ header: { typ: 'JWT' } }),
    'typ enrol+jwt': () => ({ header: { typ: 'enrol+jwt' } }),
    'no typ': () => ({ header: { typ: undefined } }),
    'an unknown critical header': () => ({ header: { crit: ['x'], x: 1 } }),
    'no key id': () => ({ header: { kid: undefined } }),
    'an unknown key id': () => ({ header: { kid: 'unknown' } }),
  };
  for (const [name, shape] of Object.entries(bad)) {
    it(`refuses ${name}`, async () => {
      const authenticator = make();
      const made = await tokenOf(shape()).catch(() => handMade(signer, shape(), seconds()));
      await expect(authenticator.authenticate(made)).rejects.toMatchObject({
        kind: 'unauthenticated',
        code: 'UNAUTHORIZED',
      });
    });
  }

  it('refuses another algorithm, whichever key signed', async () => {
    const authenticator = make();
    const [, payload = ''] = (await tokenOf()).split('.');
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const input = (alg: string) =>
      `${Buffer.from(JSON.stringify({ alg, typ: 'at+jwt', kid: signer.keyId })).toString('base64url')}.${payload}`;
    const tokens = [
      `${input('none')}.`,
      `${input('RS256')}.${sign('sha256', Buffer.from(input('RS256')), rsa).toString('base64url')}`,
      `${input('HS256')}.${Buffer.from(JSON.stringify(signer.jwk)).toString('base64url')}`,
    ];
    for (const token of tokens) {
      await expect(authenticator.authenticate(token)).rejects.toMatchObject({ kind: 'unauthenticated' });
    }
  });

  it('refuses a foreign key under a known key id, a flipped byte, garbage and oversized text', async () => {
    const authenticator = make();
    const foreign = await newSigner();
    const token = await tokenOf();
    const [header = '', payload = '', signature = ''] = token.split('.');
    const flipped = Buffer.from(payload, 'base64url');
    flipped[20] = (flipped[20] ?? 0) ^ 1;
    const cases = [
      await tokenOf({ signer: { ...foreign, keyId: signer.keyId } }),
      `${header}.${flipped.toString('base64url')}.${signature}`,
      '',
      'a.b.c',
      'x'.repeat(10_000),
    ];
    for (const text of cases) {
      await expect(authenticator.authenticate(text)).rejects.toMatchObject({ kind: 'unauthenticated' });
    }
  });

  it('judges revocation of tokens that were verified before', async () => {
    let revoked = false;
    const authenticator = make({ ...quiet, isRevoked: () => revoked });
    const token = await tokenOf();
    await authenticator.authenticate(token);
    revoked = true;
    await expect(authenticator.authenticate(token)).rejects.toMatchObject({
      kind: 'unauthenticated',
      message: expect.stringContaining('revoked') as never,
    });
  });

  it('refuses every token while revocations are stale', async () => {
    const authenticator = make({
      ...quiet,
      assertFresh: () => {
        throw new AppError('unavailable', 'REVOCATIONS_STALE', 'stale');
      },
    });
    await expect(authenticator.authenticate(await tokenOf())).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('accepts a new key and keeps the old one', async () => {
    clock = manualClock(startMs);
    const next = await newSigner();
    let jwks = { keys: [signer.jwk] };
    const authenticator = createAuthenticator({
      installation: testInstallation,
      keys: givenKeys(() => jwks),
      revocations: quiet,
      clock,
    });
    await expect(authenticator.authenticate(await tokenOf({ signer: next }))).rejects.toThrow(AppError);
    jwks = { keys: [signer.jwk, next.jwk] };
    await authenticator.authenticate(await tokenOf({ signer: next }));
    await authenticator.authenticate(await tokenOf());
  });

  it('accepts only ES256 signature keys from a key set', async () => {
    const keys = givenKeys(() => ({
      keys: [
        { ...signer.jwk, kid: 'enc', use: 'enc' },
        { ...signer.jwk, kid: 'other', alg: 'ES384' },
        { kty: 'oct', kid: 'secret', k: 'AAAA' },
        'nonsense',
        signer.jwk,
      ],
    }));
    for (const keyId of ['enc', 'other', 'secret']) expect(await keys.find(keyId)).toBeUndefined();
    expect(await keys.find(signer.keyId)).toBeDefined();
  });

  describe('remote keys', () => {
    const remote = () => {
      clock = manualClock(startMs);
      const state = { fetches: 0, down: false, jwks: { keys: [signer.jwk] } };
      const keys = remoteKeys({
        clock,
        fetch: async () => {
          state.fetches += 1;
          if (state.down) throw new Error('down');
          return state.jwks;
        },
      });
      return { keys, state };
    };

    it('are fetched once for concurrent callers', async () => {
      const { keys, state } = remote();
      await Promise.all(Array.from({ length: 10 }, () => keys.find(signer.keyId)));
      expect(state.fetches).toBe(1);
    });
    it('are fetched again for an unknown key id, at most every 5 s', async () => {
      const { keys, state } = remote();
      await keys.find(signer.keyId);
      for (let at = 0; at < 20; at += 1) expect(await keys.find(`unknown-${at}`)).toBeUndefined();
      expect(state.fetches).toBe(1);
      clock.advance(5_000);
      const next = await newSigner();
      state.jwks = { keys: [signer.jwk, next.jwk] };
      expect(await keys.find(next.keyId)).toBeDefined();
      expect(state.fetches).toBe(2);
    });
    it('stay in use while they cannot be fetched, and are refreshed', async () => {
      const { keys, state } = remote();
      await keys.find(signer.keyId);
      state.down = true;
      clock.advance(400_000);
      expect(await keys.find(signer.keyId)).toBeDefined();
      await waitFor(() => state.fetches === 2);
      clock.advance(5_000);
      expect(await keys.find('unknown')).toBeUndefined();
    });
    it('that were never fetched are an outage, not a bad token', async () => {
      const { keys, state } = remote();
      state.down = true;
      await expect(keys.find('x')).rejects.toMatchObject({ code: 'TOKEN_KEYS_UNAVAILABLE' });
      await expect(keys.find('x')).rejects.toMatchObject({ kind: 'unavailable' });
      expect(state.fetches).toBe(1);
      state.down = false;
      clock.advance(5_000);
      expect(await keys.find(signer.keyId)).toBeDefined();
    });
  });

  it('the plugin enforces policies', async () => {
    const authenticator = make();
    const app = createHttpServer({ runtime: testRuntime('test'), title: 'test' });
    authPlugin(app, authenticator);
    app.get('/open', { config: { policy: 'Anonymous' }, schema: { hide: true } }, async () => ({}));
    app.get(
      '/mine',
      { config: { policy: 'RequireAuthenticated' }, schema: { hide: true } },
      async (request) => ({
        subject: request.caller?.subject,
      }),
    );
    app.get('/system', { config: { policy: 'RequireService' }, schema: { hide: true } }, async () => ({}));
    const get = (url: string, authorization?: string) =>
      app.inject({ url, ...(authorization !== undefined && { headers: { authorization } }) });
    expect((await get('/open')).statusCode).toBe(200);
    expect((await get('/open', 'Bearer nonsense')).statusCode).toBe(200);
    const none = await get('/mine');
    expect(none.statusCode).toBe(401);
    expect(none.headers['www-authenticate']).toBe('Bearer realm="platform"');
    const broken = await get('/mine', 'Bearer nonsense');
    expect(broken.statusCode).toBe(401);
    expect(broken.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_token"');
    expect((await get('/mine', 'Basic eDp5')).statusCode).toBe(401);
    const token = await tokenOf();
    expect((await get('/mine', `Bearer ${token}`)).json()).toEqual({ subject: 'identity-1' });
    expect((await get('/mine', `bearer  ${token}`)).statusCode).toBe(200);
    expect((await get('/system', `Bearer ${token}`)).statusCode).toBe(403);
    expect((await get('/nowhere')).statusCode).toBe(404);
    await app.close();
  });
});

/** Builds tokens with headers that jose refuses to write. */
function handMade(signer: Signer, shape: TokenShape, nowSeconds: number): string {
  const header = { alg: 'ES256', typ: 'at+jwt', kid: signer.keyId, ...shape.header };
  const claims = { iss: issuer, sub: 'x', iat: nowSeconds, exp: nowSeconds + 60, ...shape.claims };
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(input), { key: signer.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}
