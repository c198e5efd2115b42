import { createPublicKey, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Browser, startWorld, type World } from '../people.fixture.ts';
import { clientId, clientSecret, type Faults, type Person } from '../stand-in.fixture.ts';

let count = 0;

/** The modules of the OpenID Foundation for relying parties (`oidcc-client-test-…`), played by a provider of the tests. */
describe('a provider that misbehaves', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld('tenant_hostile');
  });
  afterAll(() => world.close());
  afterEach(() => {
    world.standIn.faults = {};
  });

  const someone = (more: object = {}): Person => {
    const sub = `hostile-${count++}`;
    return { sub, email: `${sub}@example.net`, email_verified: true, name: 'Grace Hopper', ...more };
  };
  const enter = async (faults: Faults, person = someone()) => {
    const browser = new Browser(world.tenant);
    const visit = await browser.visit(world.standIn, 'google', person);
    world.standIn.faults = faults;
    const answer = await browser.post('/api/auth/public/social/callback', visit);
    return answer.json();
  };
  /** A sign-in whose keys were not read yet: keys are kept by issuer. */
  const enterFresh = async (faults: Faults) => {
    const tid = randomUUID();
    const iss = `${world.standIn.origin}/${tid}/v2.0`;
    const browser = new Browser(world.tenant);
    const visit = await browser.visit(world.standIn, 'microsoft', someone({ tid, iss, xms_edov: true }));
    world.standIn.faults = faults;
    return (await browser.post('/api/auth/public/social/callback', visit)).json();
  };
  const drop =
    (name: string) =>
    ({ [name]: _, ...rest }: Record<string, unknown>) =>
      rest;

  it('plain, as it should be (oidcc-client-test)', async () => {
    expect(await enter({})).toMatchObject({ outcome: 'Authenticated' });
  });

  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const changed = (token: string, index: number, change: (text: string) => string) =>
    token
      .split('.')
      .map((text, at) => (at === index ? change(text) : text))
      .join('.');
  const nowSeconds = () => Math.floor(world.tenant.clock.nowMs() / 1_000);

  const refused: readonly (readonly [string, Faults])[] = [
    ['invalid-iss', { claims: (all) => ({ ...all, iss: 'https://other.example' }) }],
    ['missing-sub', { claims: drop('sub') }],
    ['empty sub', { claims: (all) => ({ ...all, sub: '' }) }],
    ['sub with control characters', { claims: (all) => ({ ...all, sub: 'a\u0000b' }) }],
    ['sub of 256 characters', { claims: (all) => ({ ...all, sub: 'x'.repeat(256) }) }],
    ['invalid-aud', { claims: (all) => ({ ...all, aud: 'other' }) }],
    ['several audiences without azp', { claims: (all) => ({ ...all, aud: [clientId, 'other'] }) }],
    ['azp of another client', { claims: (all) => ({ ...all, aud: [clientId, 'other'], azp: 'other' }) }],
    ['missing-iat', { claims: drop('iat') }],
    ['missing exp', { claims: drop('exp') }],
    ['expired', { claims: (all) => ({ ...all, exp: nowSeconds() - 31 }) }],
    ['not valid yet', { claims: (all) => ({ ...all, nbf: nowSeconds() + 60 }) }],
    ['nonce-invalid', { claims: (all) => ({ ...all, nonce: 'another' }) }],
    ['missing nonce', { claims: drop('nonce') }],
    ['idtoken-sig-none', { token: (token) => `${part({ alg: 'none' })}.${token.split('.')[1]}.` }],
    [
      'invalid-sig-rs256',
      {
        token: (token) => changed(token, 2, (text) => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`),
      },
    ],
    [
      'claims changed after the signature',
      {
        token: (token) =>
          changed(token, 1, (text) =>
            part({ ...JSON.parse(Buffer.from(text, 'base64url').toString()), email: 'x@y.example' }),
          ),
      },
    ],
    ['unknown kid', { header: (header) => ({ ...header, kid: 'unknown' }) }],
    ['no ID token', { tokenAnswer: drop('id_token') }],
    ['no access token', { tokenAnswer: drop('access_token') }],
    ['no token type', { tokenAnswer: drop('token_type') }],
  ];
  it.each(refused)('%s is refused, without the reason', async (_, faults) => {
    const answer = await enter(faults);
    expect(answer).toMatchObject({
      status: 400,
      code: 'PROVIDER_REFUSED',
      detail: 'The provider gave no answer that could be accepted.',
    });
  });

  it('a token that is signed by its public key as a shared secret is refused', async () => {
    const { keys } = (await (await fetch(`${world.standIn.origin}/jwks`)).json()) as { keys: [object] };
    const pem = createPublicKey({ key: keys[0] as never, format: 'jwk' }).export({
      type: 'spki',
      format: 'pem',
    });
    const forged = (token: string) => {
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
      return new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(pem as string));
    };
    const browser = new Browser(world.tenant);
    const visit = await browser.visit(world.standIn, 'google', someone());
    const original: string[] = [];
    world.standIn.faults = {
      token: (token) => {
        original.push(token);
        return token;
      },
    };
    await browser.post('/api/auth/public/social/callback', visit);
    const evil = await forged(original[0] ?? '');
    expect((await enter({ token: () => evil })).code).toBe('PROVIDER_REFUSED');
  });

  it('kid-absent-single-jwks: the only key is taken; kid-absent-multiple-jwks: none is', async () => {
    const header = drop('kid');
    expect(await enterFresh({ header })).toMatchObject({ outcome: 'Authenticated' });
    const keys: Faults['keys'] = ([key]) => [key ?? {}, { ...key, kid: 'second' }];
    expect((await enterFresh({ header, keys })).code).toBe('PROVIDER_REFUSED');
  });

  it.each<[string, Faults]>([
    ['are none', { keys: () => [{ kty: 'oct', k: 'AA' }] }],
    ['are of another algorithm', { keys: ([key]) => [{ ...key, alg: 'RS512' }] }],
    ['are for encryption', { keys: ([key]) => [{ ...key, use: 'enc' }] }],
    [
      'cannot be read',
      { answer: (path, response) => path === '/jwks' && Boolean(response.writeHead(500).end()) },
    ],
    [
      'are too large',
      { answer: (path, response) => path === '/jwks' && Boolean(response.end('x'.repeat(300_000))) },
    ],
  ])('keys that %s verify nothing', async (_, faults) => {
    expect((await enterFresh(faults)).code).toBe('PROVIDER_REFUSED');
  });

  it('idtoken-sig-rs256, and a key of another kind beside it', async () => {
    const other = { ...(await exportJWK((await generateKeyPair('ES256')).publicKey)), kid: 'other' };
    expect(await enterFresh({ keys: ([key]) => [other, key ?? {}] })).toMatchObject({
      outcome: 'Authenticated',
    });
  });

  it('scope-userinfo-claims: address and name are read there, for the same person alone (userinfo-invalid-sub)', async () => {
    const person = someone();
    const bare = ({ email: _, email_verified: __, name: ___, ...rest }: Record<string, unknown>) => rest;
    expect(await enter({ claims: bare }, person)).toMatchObject({ outcome: 'Authenticated' });
    const foreign = { claims: bare, userinfo: (all: Record<string, unknown>) => ({ ...all, sub: 'other' }) };
    expect((await enter(foreign, someone())).code).toBe('PROVIDER_REFUSED');
    const none = { claims: bare, userinfo: ({ sub: _, ...rest }: Record<string, unknown>) => rest };
    expect((await enter(none, someone())).code).toBe('PROVIDER_REFUSED');
  });

  it('client-secret-basic: the secret is sent by HTTP Basic, encoded as a form first', async () => {
    await enter({});
    const [scheme, value = ''] = world.standIn.authorizations.at(-1)?.split(' ') ?? [];
    const [id, secret] = Buffer.from(value, 'base64').toString().split(':');
    expect([scheme, id, decodeURIComponent((secret ?? '').replaceAll('+', ' '))]).toEqual([
      'Basic',
      clientId,
      clientSecret,
    ]);
  });

  it('signing-key-rotation: new keys are read, once a minute at most', async () => {
    const reads = () => world.standIn.asked.filter((path) => path === '/jwks').length;
    await enter({});
    await world.standIn.rotate();
    const before = reads();
    // a stream of tokens with unknown keys reads nothing more within the minute
    for (let tries = 0; tries < 5; tries++)
      await enter({ header: (header) => ({ ...header, kid: `k${tries}` }) });
    expect(reads() - before).toBeLessThanOrEqual(1);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 });
    try {
      expect(await enter({})).toMatchObject({ outcome: 'Authenticated' });
      expect(reads() - before).toBeLessThanOrEqual(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it('an answer from another issuer is refused (RFC 9207)', async () => {
    const browser = new Browser(world.tenant);
    const visit = await browser.visit(world.standIn, 'google', someone());
    const before = world.standIn.asked.length;
    const mixed = { ...visit, iss: 'https://attacker.example' };
    const answer = await browser.post('/api/auth/public/social/callback', mixed);
    expect(answer.json().code).toBe('PROVIDER_REFUSED');
    // the code is not shown to the provider
    expect(world.standIn.asked).toHaveLength(before);
  });

  it.each([
    [
      'redirects',
      {
        answer: (path, response) =>
          path === '/token' && Boolean(response.writeHead(307, { location: '/x' }).end()),
      },
    ],
    ['is no JSON', { answer: (path, response) => path === '/token' && Boolean(response.end('<html>')) }],
    [
      'is large',
      { answer: (path, response) => path === '/token' && Boolean(response.end('x'.repeat(300_000))) },
    ],
    ['is cut', { answer: (path, response) => path === '/token' && Boolean(response.destroy()) }],
    [
      'is an error with text',
      {
        answer: (path, response) =>
          path === '/token' &&
          Boolean(
            response
              .writeHead(400, { 'content-type': 'application/json' })
              .end('{"error":"<script>","error_description":"secret"}'),
          ),
      },
    ],
  ] satisfies (readonly [string, Faults])[])(
    'an endpoint whose answer %s signs in no person',
    async (_, faults) => {
      const answer = await enter(faults);
      expect(answer.code).toBe('PROVIDER_REFUSED');
      expect(JSON.stringify(answer)).not.toMatch(/script|secret/);
    },
  );
});
