import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { withOtherSignatureForm, withTrailingBits } from '#kit/testing/tokens.ts';
import {
  type Authenticator,
  authPlugin,
  createAuthenticator,
  givenKeys,
  type RevocationView,
} from './auth.ts';

const startMs = 1_800_000_000_000;
const keyId = 'key-1';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'ES256', use: 'sig' };

function make(isRevoked: RevocationView['isRevoked'] = () => false): Authenticator {
  return createAuthenticator({
    installation: testInstallation,
    keys: givenKeys(() => ({ keys: [jwk] })),
    revocations: { isRevoked, assertFresh: () => undefined },
    clock: manualClock(startMs),
  });
}

function claims() {
  return {
    iss: `urn:platform:${testInstallation}`,
    aud: [`${testInstallation}:consumer`],
    sub: 'identity-1',
    iat: startMs / 1000,
    exp: startMs / 1000 + 60,
    jti: randomUUID(),
    token_type: 'user',
    token_use: 'access',
    tier: 'consumer',
    client_id: 'first-party',
  };
}

/** A segment whose last character has bits behind the last byte; JSON allows white space, which fixes the length. */
function segmentOf(part: object): string {
  const json = JSON.stringify(part);
  return Buffer.from(json.length % 3 === 0 ? `${json} ` : json).toString('base64url');
}

/** A token over the two segments exactly as they are written. */
function signed(header: string, payload: string): string {
  const input = `${header}.${payload}`;
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

const header = segmentOf({ alg: 'ES256', typ: 'at+jwt', kid: keyId });
const malformed = { kind: 'unauthenticated', message: 'Token refused: it is malformed' };

/** Spellings that a lenient decoder reads as the same token. */
function otherSpellings(token: string): readonly string[] {
  const [head = '', payload = '', signature = ''] = token.split('.');
  const added = ['=', '==', ' ', '\n', '\t', '.', '\0', '\u200b', '!'].flatMap((text) => [
    `${text}${token}`,
    `${head}${text}.${payload}.${signature}`,
    `${head}.${payload}${text}.${signature}`,
    `${token}${text}`,
  ]);
  const standard = signature.replaceAll('-', '+').replaceAll('_', '/');
  return [
    ...added,
    `${head}.${payload}.${withTrailingBits(signature)}`,
    `${head}.${payload}.${signature.slice(0, 9)}\n${signature.slice(9)}`,
    `${head}.${payload}.${standard}==`,
  ];
}

describe('spellings of a token', () => {
  it('every spelling but one is refused, before and after the token is cached', async () => {
    const authenticator = make();
    const token = signed(header, segmentOf(claims()));
    for (let round = 0; round < 2; round += 1) {
      for (const text of otherSpellings(token)) {
        await expect(authenticator.authenticate(text), JSON.stringify(text)).rejects.toMatchObject(malformed);
      }
      await authenticator.authenticate(token);
    }
  });

  it('a segment that is not canonical is refused, even when it is signed as it is written', async () => {
    const payload = segmentOf(claims());
    await make().authenticate(signed(header, payload));
    for (const [head, body] of [
      [withTrailingBits(header), payload],
      [header, withTrailingBits(payload)],
      [`${header}=`, payload],
      [header, `${payload}==`],
      [header, `${payload} `],
    ] as const) {
      await expect(make().authenticate(signed(head, body))).rejects.toMatchObject(malformed);
    }
  });

  it('spellings are judged without looking up a key', async () => {
    const asked: string[] = [];
    const authenticator = createAuthenticator({
      installation: testInstallation,
      keys: {
        find: async (id) => {
          asked.push(id);
          return undefined;
        },
      },
      revocations: { isRevoked: () => false, assertFresh: () => undefined },
      clock: manualClock(startMs),
    });
    const token = signed(header, segmentOf(claims()));
    for (const text of [...otherSpellings(token), 'a.b', 'a.b.c.d', '..', `${token}.${token}`]) {
      await expect(authenticator.authenticate(text)).rejects.toMatchObject(malformed);
    }
    expect(asked).toEqual([]);
    await expect(authenticator.authenticate(token)).rejects.toMatchObject({ kind: 'unauthenticated' });
    expect(asked).toEqual([keyId]);
  });

  it('the other form (r, n - s) of a signature is the same token: revoking its jti revokes both', async () => {
    const revoked = new Set<string>();
    const authenticator = make((caller) => revoked.has(caller.tokenId));
    const token = signed(header, segmentOf(claims()));
    const twin = withOtherSignatureForm(token);
    expect(twin).not.toBe(token);
    const caller = await authenticator.authenticate(token);
    expect(await authenticator.authenticate(twin)).toEqual(caller);
    revoked.add(caller.tokenId);
    for (const text of [token, twin]) {
      await expect(authenticator.authenticate(text)).rejects.toMatchObject({
        message: 'Token refused: it was revoked',
      });
    }
  });

  it('a route answers 401 with a challenge', async () => {
    const app = createHttpServer({ runtime: testRuntime('test'), title: 'test' });
    authPlugin(app, make());
    app.get(
      '/mine',
      { config: { policy: 'RequireAuthenticated' }, schema: { hide: true } },
      async () => ({}),
    );
    const token = signed(header, segmentOf(claims()));
    const get = (text: string) => app.inject({ url: '/mine', headers: { authorization: `Bearer ${text}` } });
    expect((await get(token)).statusCode).toBe(200);
    const signature = token.slice(token.lastIndexOf('.') + 1);
    const respelled = token.slice(0, -signature.length) + withTrailingBits(signature);
    for (const text of [`${token}=`, `${token}==`, `${token}===`, respelled, `${token}.`, `${token}+`]) {
      const refused = await get(text);
      expect([refused.statusCode, refused.headers['www-authenticate']]).toEqual([
        401,
        'Bearer realm="platform", error="invalid_token"',
      ]);
    }
    await app.close();
  });
});
