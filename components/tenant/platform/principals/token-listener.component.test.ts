import { once } from 'node:events';
import { type RequestOptions, request } from 'node:https';
import { connect } from 'node:tls';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import type { TlsMaterial } from '#kit/http/http.ts';
import { type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { formOf, grant, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { mintDelegatedToken } from './delegate.ts';
import { mintServiceToken } from './mint.ts';
import { delegatedTokenPath, startTokenListener, type TokenListener, tokenPath } from './token-listener.ts';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const hourMs = 3_600_000;

describe.each([false, true])('mutual-TLS token listener, shared secrets disabled: %s', (disabled) => {
  let tenant: TestTenant;
  let authority: TestAuthority;
  let listener: TokenListener;
  let register: TlsMaterial;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_mtls', { ServiceAuth__DisableSharedSecrets: String(disabled) });
    authority = await testAuthority();
    register = await authority.issue('service-register');
    listener = await startTokenListener({
      tls: await authority.identity('service-tenant'),
      host: '127.0.0.1',
      port: 0,
      clock: systemClock(),
      log: tenant.runtime.log,
      mint: (request) => mintServiceToken(tenant.mint, request),
      mintDelegated: (request) => mintDelegatedToken(tenant.mint, request),
    });
  });
  afterAll(async () => {
    await listener.stop();
    await tenant.stop();
  });

  const send = (
    tls: Partial<TlsMaterial>,
    form: Record<string, string>,
    more: RequestOptions = {},
  ): Promise<Answer> => {
    const payload = new URLSearchParams(form).toString();
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: listener.port,
          path: tokenPath,
          method: 'POST',
          ca: authority.caPem,
          ...tls,
          checkServerIdentity: () => undefined,
          agent: false,
          headers: {
            'content-type': 'application/x-www-form-urlencoded',
            'content-length': payload.length,
          },
          ...more,
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            text += chunk;
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
        },
      );
      sent.on('error', reject);
      sent.end(payload);
    });
  };
  it('serves nothing behind a request for another protocol', async () => {
    const socket = connect({
      host: '127.0.0.1',
      port: listener.port,
      ...register,
      checkServerIdentity: () => undefined,
    });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const head = (more: string) => `POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n${more}\r\n`;
    socket.write(head('Connection: Upgrade\r\nUpgrade: websocket\r\n') + head(''));
    await once(socket, 'close');
    const answers = Buffer.concat(chunks)
      .toString()
      .match(/HTTP\/1\.1 \d+/g);
    expect(answers).toEqual(['HTTP/1.1 404']);
  });

  const credentials = { grant_type: 'client_credentials', client_id: 'service-register' };
  const secret = () => tenant.files.secretOf('service-register');

  it('mints with only a certificate; the claims equal those of a mint with a secret', async () => {
    const { status, body } = await send(register, credentials);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'wallets:sign validator:write',
    });
    expect(body).not.toHaveProperty('refresh_token');
    const claims = decodeJwt(String(body['access_token']));
    expect(claims).toMatchObject({
      aud: [`${testInstallation}:service`],
      sub: '00000000-0000-0000-0002-000000000003',
      client_id: 'service-register',
      service_name: 'register',
      token_type: 'service',
      tier: 'service',
      scope: 'wallets:sign validator:write',
      can_sign_system: true,
    });
    if (disabled) return;
    const form = formOf({ ...credentials, client_secret: secret() });
    const bySecret = await tenant.internal.inject({ ...form, url: tokenPath });
    const same = decodeJwt(bySecret.json().access_token);
    const changing = { jti: '', iat: 0, nbf: 0, exp: 0 };
    expect({ ...same, ...changing }).toEqual({ ...claims, ...changing });
    expect((same.exp ?? 0) - (same.nbf ?? 0)).toBe((claims.exp ?? 0) - (claims.nbf ?? 0));
  });

  it.each([
    ['no certificate', 'peer did not return a certificate', async () => ({})],
    [
      'a certificate of a foreign CA',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      async () => (await testAuthority()).issue('service-register'),
    ],
    [
      'an expired certificate',
      'CERT_HAS_EXPIRED',
      () =>
        authority.issue('service-register', {
          notBeforeMs: Date.now() - hourMs,
          notAfterMs: Date.now() - 60_000,
        }),
    ],
    [
      'a certificate that is not yet valid',
      'CERT_NOT_YET_VALID',
      () =>
        authority.issue('service-register', {
          notBeforeMs: Date.now() + hourMs,
          notAfterMs: Date.now() + 2 * hourMs,
        }),
    ],
  ])('rejects the handshake with %s and logs %s', async (_, reason, material) => {
    const { key, cert } = (await material()) as Partial<TlsMaterial>;
    const tls = key === undefined || cert === undefined ? {} : { key, cert };
    await expect(send(tls, credentials)).rejects.toThrow();
    const isRefusal = (line: (typeof tenant.runtime.lines)[number]) =>
      line['msg'] === 'client refused in handshake' && String(line['reason']).includes(reason);
    await waitFor(() => tenant.runtime.lines.some(isRefusal));
  });

  it('refuses a certificate with two URI SANs', async () => {
    const uris = [
      `spiffe://${testInstallation}/service/service-register`,
      `spiffe://${testInstallation}/service/x`,
    ];
    const answer = await send(await authority.issue('service-register', { uris }), credentials);
    expect([answer.status, answer.body['error']]).toEqual([401, 'invalid_client']);
  });

  it('refuses a SAN of another client, logs both identities and writes an audit row', async () => {
    const answer = await send(await authority.issue('service-wallet'), credentials);
    expect([answer.status, answer.body['error']]).toEqual([401, 'invalid_client']);
    const presented = `spiffe://${testInstallation}/service/service-wallet`;
    expect(tenant.runtime.lines).toContainEqual(
      expect.objectContaining({ presented, requested: 'service-register' }),
    );
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'success', 'details'])
      .where('event_type', '=', 'PermissionDenied')
      .execute();
    expect(rows).toContainEqual({
      event_type: 'PermissionDenied',
      success: false,
      details: { action: 'token.mint', presented, requested: 'service-register' },
    });
  });

  it('refuses an unknown principal and one that is not active', async () => {
    const unknown = await send(await authority.issue('service-unknown'), {
      ...credentials,
      client_id: 'service-unknown',
    });
    expect([unknown.status, unknown.body['error']]).toEqual([401, 'invalid_client']);
    const setStatus = (status: string) =>
      tenant.db.transact((tx) =>
        tx
          .updateTable('service_principals')
          .set({ status })
          .where('client_id', '=', 'service-register')
          .execute(),
      );
    await setStatus('Suspended');
    tenant.principals.invalidate();
    expect((await send(register, credentials)).status).toBe(401);
    await setStatus('Active');
    tenant.principals.invalidate();
    expect((await send(register, credentials)).status).toBe(200);
  });

  it('verifies a secret that is present, independent of the certificate', async () => {
    const right = await send(register, { ...credentials, client_secret: secret() });
    const wrong = await send(register, { ...credentials, client_secret: 'wrong' });
    if (disabled) {
      const refused = { error: 'invalid_client', code: 'SHARED_SECRETS_DISABLED' };
      expect([right.status, wrong.status]).toEqual([400, 400]);
      expect(right.body).toMatchObject(refused);
      return;
    }
    expect(right.status).toBe(200);
    expect([wrong.status, wrong.body['error']]).toEqual([401, 'invalid_client']);
  });

  it.each([
    [{ grant_type: 'password', client_id: 'service-register' }, 400, 'unsupported_grant_type'],
    [{ client_id: 'service-register' }, 400, 'invalid_request'],
    [{ grant_type: 'client_credentials' }, 400, 'invalid_request'],
    [{ ...credentials, scope: 'dockets:write' }, 400, 'invalid_scope'],
  ])('refuses %j', async (form, status, error) => {
    const answer = await send(register, form);
    expect([answer.status, answer.body['error']]).toEqual([status, error]);
  });

  it('narrows the scope on request', async () => {
    const { body } = await send(register, { ...credentials, scope: 'wallets:sign' });
    expect(body['scope']).toBe('wallets:sign');
  });

  it('refuses other paths, methods, large bodies and other content types', async () => {
    expect(
      (await send(register, credentials, { path: '/api/internal/service-auth/rotate-secret' })).status,
    ).toBe(404);
    expect((await send(register, credentials, { path: '/' })).status).toBe(404);
    expect((await send(register, {}, { method: 'GET' })).status).toBe(404);
    expect((await send(register, { ...credentials, x: 'y'.repeat(20_000) })).status).toBe(413);
    const plain = { 'content-type': 'text/plain' };
    expect((await send(register, credentials, { headers: plain })).status).toBe(415);
  });

  it('the listener without TLS requires a secret', async () => {
    const without = await tenant.internal.inject({ ...formOf(credentials), url: tokenPath });
    expect([without.statusCode, without.json().error]).toEqual([401, 'invalid_client']);
    const form = formOf({ ...credentials, client_secret: secret() });
    const answer = await tenant.internal.inject({ ...form, url: tokenPath });
    expect(answer.statusCode).toBe(disabled ? 400 : 200);
    if (disabled) expect(answer.json().code).toBe('SHARED_SECRETS_DISABLED');
  });

  it('rotates a secret, unless secrets are disabled', async () => {
    const rotate = (currentSecret: string) =>
      tenant.internal.inject({
        method: 'POST',
        url: '/api/internal/service-auth/rotate-secret',
        payload: { clientId: 'service-wallet', currentSecret },
      });
    const before = tenant.files.secretOf('service-wallet');
    const answer = await rotate(before);
    if (disabled) {
      expect([answer.statusCode, answer.json().code]).toEqual([409, 'SHARED_SECRETS_DISABLED']);
      return;
    }
    expect(answer.statusCode).toBe(200);
    const { newClientSecret } = answer.json();
    expect(Buffer.from(newClientSecret, 'base64url')).toHaveLength(32);
    const mint = (client_secret: string) =>
      tenant.internal.inject({
        ...formOf({ grant_type: 'client_credentials', client_id: 'service-wallet', client_secret }),
        url: tokenPath,
      });
    expect((await mint(before)).statusCode).toBe(401);
    expect((await mint(newClientSecret)).statusCode).toBe(200);
    expect((await rotate(before)).statusCode).toBe(401);
  });

  it('mints for a user with a user token; by user id only with the scope tenant:delegate', async () => {
    const { access_token } = await grant(tenant);
    const path = delegatedTokenPath;
    const delegated = await send(
      register,
      { client_id: 'service-register', subject_token: access_token },
      { path },
    );
    expect([delegated.status, delegated.body['expires_in']]).toEqual([200, 300]);
    const user = decodeJwt(access_token);
    expect(decodeJwt(String(delegated.body['access_token']))).toMatchObject({
      sub: '00000000-0000-0000-0002-000000000003',
      delegated_user_id: user.sub,
      delegated_org_id: user['org_id'],
    });
    const byName = { client_id: 'service-register', delegated_user_id: String(user.sub) };
    const refused = await send(register, byName, { path });
    expect([refused.status, refused.body['error']]).toEqual([400, 'invalid_scope']);
    const garbage = await send(register, { client_id: 'service-register', subject_token: 'x.y.z' }, { path });
    expect([garbage.status, garbage.body['error']]).toEqual([401, 'invalid_grant']);
  });
});
