import { randomBytes, randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { installationAuthority, type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { createApi } from '../harness/api.ts';
import { signIn } from '../harness/journey.ts';
import { readState } from '../harness/system.ts';
import { readSecret } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { AUTHORITY_SECRET, account } from './identity-manifests.ts';
import { changeInstallation, ensureInstalled, installation, namespace, openGateway } from './installed.ts';
import { apply, kubectl } from './kubectl.ts';
import { visitDatabase } from './operator/store.ts';
import { type Answers, requestFrom, type TokenListenerRequest } from './token-caller.ts';

/** The condition table of the mutual-TLS listener (specification document 1, section 5), tested from pods. */

const hourMs = 3_600_000;
const firsts = 'first-service-secrets';
const secrets = {
  'service-wallet': randomBytes(32).toString('base64url'),
  'service-register': randomBytes(32).toString('base64url'),
};
const wallet = { name: 'asks-as-wallet', serviceAccount: 'service-wallet' };
/** A member of a set that does not exist: it has an identity and no principal. */
const stranger = { name: 'stranger-0', serviceAccount: 'validator-stranger' };
const statuses = { 'validator-stranger-1': 'Suspended', 'validator-stranger-2': 'Revoked' } as const;
const present = 'validator-stranger-3';
const idOf = (clientId: string, domain = installation) => `spiffe://${domain}/service/${clientId}`;
const credentials = (clientId: string) => ({ grant_type: 'client_credentials', client_id: clientId });
/** A TLS alert or the end of the connection, whichever the caller sees first; the listener's log has the reason. */
const inHandshake = expect.stringMatching(/^(?:ERR_SSL_\w+|ECONNRESET|EPROTO|EPIPE)$/);
const svid = (
  form: Readonly<Record<string, string>>,
  more: Partial<TokenListenerRequest> = {},
): TokenListenerRequest => ({
  by: 'svid',
  form,
  ...more,
});

let startedAt: Date;
let authority: TestAuthority;
let answers: Answers;
let strangerAnswers: Answers;

type Leaf = Parameters<TestAuthority['issue']>[1];

/** A certificate of an authority, valid except for the members of `leaf`. */
async function certificate(by: TestAuthority, clientId: string, leaf: Leaf = {}) {
  const { key, cert } = await by.issue(clientId, leaf);
  return { key, cert };
}

const storedRows = z.object({
  roots: z.array(z.object({ stage: z.string(), certificatePem: z.string(), keyPem: z.string().optional() })),
});

/** The authority that signs the SVIDs of the installation. */
async function openAuthority(): Promise<TestAuthority> {
  const { roots } = storedRows.parse(
    JSON.parse(await readSecret(namespace, AUTHORITY_SECRET, 'authorities.json')),
  );
  const { certificatePem = '', keyPem = '' } = roots.find(({ stage }) => stage === 'active') ?? {};
  return installationAuthority({ certificatePem, keyPem }, installation);
}

/** Principals and refusals, read directly from the database. */
const query = (text: string, values: readonly unknown[] = []) =>
  visitDatabase(namespace, async (client) => (await client.query({ text, values: [...values] })).rows);

async function makePrincipals(): Promise<void> {
  for (const [clientId, status] of Object.entries({ ...statuses, [present]: 'Active' }))
    await query(
      `insert into tenant.service_principals (id, client_id, service_name, scopes, status, created_at)
       values ($1, $2, 'stranger', '{registers:read}', $3, now())`,
      [randomUUID(), clientId, status],
    );
}

const removePrincipals = () => query(`delete from tenant.service_principals where service_name = 'stranger'`);

/** Requests of the wallet service's pod, by the names that the tests use. */
async function walletRequests(subjectToken: string): Promise<Record<string, TokenListenerRequest>> {
  const own = credentials('service-wallet');
  const delegated = '/api/internal/service-auth/token/delegated';
  const foreign = await testAuthority(installation);
  const beside = { ...own, client_secret: secrets['service-wallet'] };
  const by = async (clientId: string, leaf: Leaf = {}) => ({
    by: await certificate(authority, clientId, leaf),
    form: credentials(clientId),
  });
  return {
    own: svid(own),
    delegated: svid({ client_id: 'service-wallet', subject_token: subjectToken }, { path: delegated }),
    'another client': svid(credentials('service-register')),
    'two names': await by('service-wallet', { uris: [idOf('service-wallet'), idOf('service-register')] }),
    'another trust domain': await by('service-wallet', { uris: [idOf('service-wallet', 'else.local')] }),
    present: await by(present),
    Suspended: await by('validator-stranger-1'),
    Revoked: await by('validator-stranger-2'),
    'secret beside': svid(beside),
    'wrong secret beside': svid({ ...own, client_secret: 'wrong' }),
    'secret beside, delegated': svid({ ...beside, subject_token: subjectToken }, { path: delegated }),
    '/': svid(own, { path: '/' }),
    rotation: svid(own, { path: '/api/internal/service-auth/rotate-secret' }),
    'public token route': svid(own, { path: '/api/service-auth/token' }),
    organizations: svid({}, { path: '/api/organizations', method: 'GET' }),
    health: svid({}, { path: '/health', method: 'GET' }),
    'by GET': svid({}, { method: 'GET' }),
    'no certificate': { by: 'nothing', form: own },
    'secret without a certificate': { by: 'nothing', form: beside },
    'foreign authority': { by: await certificate(foreign, 'service-wallet'), form: own },
    expired: await by('service-wallet', {
      notBeforeMs: Date.now() - hourMs,
      notAfterMs: Date.now() - 60_000,
    }),
    'not yet valid': await by('service-wallet', {
      notBeforeMs: Date.now() + hourMs,
      notAfterMs: Date.now() + 2 * hourMs,
    }),
    'TLS 1.2': svid(own, { newest: 'TLSv1.2' }),
  };
}

/** Log lines of the tenant service since the start of the tests. */
async function logLines(): Promise<readonly Record<string, unknown>[]> {
  const since = ['--since-time', startedAt.toISOString(), '--tail=-1'];
  const text = await kubectl(
    ...['logs', '-n', namespace, '-l', 'chancery.dev/client-id=service-tenant,app.kubernetes.io/name=tenant'],
    ...['-c', 'tenant', ...since],
  );
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

beforeAll(async () => {
  await ensureInstalled();
  startedAt = new Date();
  const door = await openGateway();
  authority = await openAuthority();
  await removePrincipals();
  await makePrincipals();
  await apply(namespace, account({ namespace }, stranger.serviceAccount));
  const { access_token } = await signIn(createApi(door.url), readState(door.stateFile));
  const own = { own: svid(credentials('validator-stranger-0')) };
  [answers, strangerAnswers] = await Promise.all([
    requestFrom(wallet, await walletRequests(access_token)),
    requestFrom(stranger, own),
  ]);
}, 240_000);

afterAll(async () => {
  await kubectl('delete', 'serviceaccount', stranger.serviceAccount, '-n', namespace, '--ignore-not-found');
  await removePrincipals();
});

explainFailures(namespace);

describe('a pod that requests a service token', () => {
  test('has the identity of its ServiceAccount, or of its name as a member of a set', () => {
    expect(answers.id).toBe(idOf('service-wallet'));
    expect(strangerAnswers.id).toBe(idOf('validator-stranger-0'));
  });

  test('gets its own by its certificate alone', () => {
    const { own } = answers.responses;
    expect(own).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600 } });
    const token = own !== undefined && 'body' in own ? String(own.body['access_token']) : '';
    expect(decodeJwt(token)).toMatchObject({
      iss: `urn:platform:${installation}`,
      aud: [`${installation}:service`],
      client_id: 'service-wallet',
      token_type: 'service',
      tier: 'service',
    });
    expect(answers.responses['present']).toMatchObject({ status: 200, body: { scope: 'registers:read' } });
  });

  test('gets one for the user whose token it presents', () => {
    expect(answers.responses['delegated']).toMatchObject({ status: 200, body: { expires_in: 300 } });
  });

  test.each(['another client', 'two names', 'another trust domain', 'Suspended', 'Revoked'])(
    'gets nothing: %s',
    (name) => {
      expect(answers.responses[name]).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    },
  );

  test('gets nothing without a principal', () => {
    expect(strangerAnswers.responses['own']).toMatchObject({
      status: 401,
      body: { error: 'invalid_client' },
    });
  });

  test('is logged and audited with both identities when it requests the token of another client', async () => {
    const both = { presented: idOf('service-wallet'), requested: 'service-register' };
    expect(await logLines()).toContainEqual(expect.objectContaining(both));
    const rows = await query(
      `select success, details from tenant.audit_events where event_type = 'PermissionDenied' and occurred_at >= $1`,
      [startedAt],
    );
    expect(rows).toContainEqual({ success: false, details: { action: 'token.mint', ...both } });
  });

  test.each(['secret beside', 'wrong secret beside', 'secret beside, delegated'])(
    'gets the error for disabled shared secrets: %s',
    (name) => {
      const body = { error: 'invalid_client', code: 'SHARED_SECRETS_DISABLED' };
      expect(answers.responses[name]).toMatchObject({ status: 400, body });
    },
  );

  test.each(['/', 'rotation', 'public token route', 'organizations', 'health', 'by GET'])(
    'finds nothing else served there: %s',
    (name) => {
      expect(answers.responses[name]).toMatchObject({ status: 404 });
    },
  );

  test.each([
    'no certificate',
    'secret without a certificate',
    'foreign authority',
    'expired',
    'not yet valid',
    'TLS 1.2',
  ])('is refused in the handshake: %s', (name) => {
    expect(answers.responses[name]).toEqual({ refused: inHandshake });
  });

  test('that was refused in the handshake is logged with the reason', async () => {
    const reasons = (await logLines())
      .filter(({ msg }) => msg === 'client refused in handshake')
      .map(({ reason }) => String(reason));
    for (const reason of [
      'peer did not return a certificate',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'CERT_HAS_EXPIRED',
      'CERT_NOT_YET_VALID',
      'unsupported protocol',
    ])
      expect(reasons).toContainEqual(expect.stringContaining(reason));
  });
});

describe('with enabled shared secrets', () => {
  let responses: Answers['responses'];
  const forgetSecrets = () =>
    query('update tenant.service_principals set secret_hash = null where client_id = any($1)', [
      Object.keys(secrets),
    ]);

  beforeAll(async () => {
    await forgetSecrets();
    const metadata = { name: firsts, namespace };
    await apply(namespace, { apiVersion: 'v1', kind: 'Secret', metadata, stringData: secrets });
    await changeInstallation('tenant.sharedSecrets=true', `tenant.serviceSecrets.existingSecret=${firsts}`);
    const own = credentials('service-wallet');
    const others = credentials('service-register');
    const wrong = { client_secret: 'wrong' };
    ({ responses } = await requestFrom(wallet, {
      'certificate alone': svid(own),
      'right secret': svid({ ...own, client_secret: secrets['service-wallet'] }),
      'right secret of another client': svid({ ...others, client_secret: secrets['service-register'] }),
      'wrong secret': svid({ ...own, ...wrong }),
      'wrong secret of another client': svid({ ...others, ...wrong }),
      'secret without a certificate': {
        by: 'nothing',
        form: { ...own, client_secret: secrets['service-wallet'] },
      },
    }));
  }, 180_000);

  afterAll(async () => {
    await changeInstallation();
    await kubectl('delete', 'secret', firsts, '-n', namespace, '--ignore-not-found');
    await forgetSecrets();
  }, 180_000);

  test.each(['certificate alone', 'right secret', 'right secret of another client'])(
    'a pod gets a token: %s',
    (name) => {
      expect(responses[name]).toMatchObject({ status: 200, body: { token_type: 'Bearer' } });
    },
  );

  test.each(['wrong secret', 'wrong secret of another client'])(
    'its certificate rescues no secret: %s',
    (name) => {
      expect(responses[name]).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    },
  );

  test('a secret does not replace the certificate', () => {
    expect(responses['secret without a certificate']).toEqual({ refused: inHandshake });
  });
});
