import 'reflect-metadata';
import { execFileSync, spawn } from 'node:child_process';
import { webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } from '@peculiar/x509';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { workloadContract } from '#kit/workload/workload.contract.ts';
import { audience, IssuerWorld, installation } from './issuer.fixture.ts';

const walletId = `spiffe://${installation}/service/service-wallet`;
const p256 = { name: 'ECDSA', namedCurve: 'P-256' };

async function csrFor(...uris: readonly string[]): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(p256, true, ['sign', 'verify']);
  const names = uris.map((value) => ({ type: 'url' as const, value }));
  const csr = await Pkcs10CertificateRequestGenerator.create({
    name: 'CN=x',
    keys,
    signingAlgorithm: { ...p256, hash: 'SHA-256' },
    extensions: names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)],
  });
  return csr.toString('pem');
}

function forged(csr: string): string {
  const bytes = Buffer.from(csr.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  return `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
}

const body = (csr: string) => JSON.stringify({ csr });

// Short, so that the contract sees renewal by time alone.
workloadContract('ServiceAccount issuer', async () => {
  const world = await IssuerWorld.open(6);
  return {
    source: { issuer: world.pod('service-wallet', 'service-wallet-5c6d-abcde') },
    trustDomain: installation,
    spiffeId: walletId,
    rotate: async () => undefined,
    stop: () => world.stop(),
  };
});

describe('the issuer', () => {
  let world: IssuerWorld;

  beforeEach(async () => {
    world = await IssuerWorld.open();
  });
  afterEach(async () => {
    await world.stop();
  });

  it('gives a service its SVID with the bundle', async () => {
    const given = await world.ask({
      token: world.token('service-wallet'),
      body: body(await csrFor(walletId)),
    });
    expect(given.status).toBe(200);
    expect(given.body).toMatchObject({ spiffeId: walletId, bundle: world.bundle });
    const lifeMs = Date.parse(String(given.body['expiresAt'])) - Date.now();
    expect(lifeMs).toBeGreaterThan(3_590_000);
    expect(lifeMs).toBeLessThanOrEqual(3_600_000);
    expect(await world.metric('svids_total{client_id="service-wallet"}')).toBe(1);
  });

  it('gives a validator the identity of its pod', async () => {
    const token = world.token('validator-main', { pod: 'main-2' });
    const given = await world.ask({ token, body: body(await csrFor()) });
    expect(given.body['spiffeId']).toBe(`spiffe://${installation}/service/validator-main-2`);
  });

  it('gives chains that openssl verifies', async () => {
    const given = await world.ask({ token: world.token('service-wallet'), body: body(await csrFor()) });
    const chain = world.write('chain.pem', String(given.body['chain']));
    const bundle = world.write('bundle.pem', String(given.body['bundle']));
    const openssl = (...args: string[]) => execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' });
    for (const purpose of ['sslserver', 'sslclient']) {
      const verify = ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', bundle, chain];
      expect(openssl(...verify)).toContain('OK');
    }
    const names = openssl('x509', '-in', chain, '-noout', '-ext', 'subjectAltName,keyUsage,basicConstraints');
    expect(names).toContain(`URI:${walletId}`);
    expect(names).toMatch(/Key Usage: critical\s+Digital Signature\n/);
    expect(names).toContain('CA:FALSE');
  });

  it("has a certificate of the same authority for itself, with its SPIFFE id and its Service's name", async () => {
    const port = Number(new URL(world.url).port);
    const socket = connect({ port, host: '127.0.0.1', ca: world.bundle, servername: `svid-issuer.acme.svc` });
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    expect(socket.authorized).toBe(true);
    expect(socket.getPeerCertificate().subjectaltname).toContain(`URI:${audience}`);
    socket.destroy();
  });

  const cases: readonly [string, number, string, () => Promise<{ token?: string; body?: string }>][] = [
    ['no token', 401, 'token_missing', async () => ({})],
    ['what is no token', 401, 'token_rejected', async () => ({ token: 'garbage' })],
    [
      'an expired token',
      401,
      'token_rejected',
      async () => ({ token: world.token('service-wallet', { expiresAtMs: Date.now() - 1 }) }),
    ],
    [
      'a token for the API server',
      401,
      'token_rejected',
      async () => ({
        token: world.token('service-wallet', { audiences: ['https://kubernetes.default.svc'] }),
      }),
    ],
    [
      'a person’s token',
      403,
      'not_a_service_account',
      async () => ({ token: world.token('x', { username: 'admin' }) }),
    ],
    [
      'the same ServiceAccount in another namespace',
      403,
      'namespace',
      async () => ({ token: world.token('x', { username: 'system:serviceaccount:other:service-wallet' }) }),
    ],
    [
      'another ServiceAccount',
      403,
      'service_account',
      async () => ({ token: world.token('service-tenant') }),
    ],
    [
      'a validator without a pod',
      403,
      'pod_name_missing',
      async () => ({ token: world.token('validator-main') }),
    ],
    [
      'a pod of another set',
      403,
      'pod_name',
      async () => ({ token: world.token('validator-main', { pod: 'other-0' }) }),
    ],
    [
      'another SPIFFE id in the request',
      400,
      'csr_name',
      async () => ({ body: body(await csrFor(`spiffe://${installation}/service/service-register`)) }),
    ],
    ['a forged signature', 400, 'csr_signature', async () => ({ body: body(forged(await csrFor())) })],
    ['a request that cannot be read', 400, 'csr_unreadable', async () => ({ body: body('x') })],
    ['an oversized body', 413, 'too_large', async () => ({ body: body('x'.repeat(20_000)) })],
    ['a body of another shape', 400, 'malformed', async () => ({ body: '{"csr":1}' })],
    ['a body that is no JSON', 400, 'malformed', async () => ({ body: '{' })],
  ];

  it.each(cases)(
    'refuses %s with %i, logs it once and counts it as %s',
    async (what, status, reason, given) => {
      const asked = { token: world.token('service-wallet'), body: body(await csrFor()), ...(await given()) };
      const { token, ...without } = asked;
      const answer = await world.ask(what === 'no token' ? without : { ...without, token });
      expect(answer.status).toBe(status);
      expect(answer.body['chain']).toBeUndefined();
      const lines = world.runtime.lines.filter(({ msg }) => msg === 'svid refused');
      expect(lines.map((line) => line['reason'])).toEqual([reason]);
      expect(await world.metric(`refusals_total{reason="${reason}"}`)).toBe(1);
      expect(JSON.stringify(world.runtime.lines)).not.toContain(token);
    },
  );

  it('reports that the cluster cannot review tokens, and recovers with it', async () => {
    world.server.reviewsFail = true;
    const asked = { token: world.token('service-wallet'), body: body(await csrFor()) };
    const refused = await world.ask(asked);
    expect(refused).toMatchObject({ status: 503, body: { code: 'TOKEN_REVIEW_UNAVAILABLE' } });
    expect(await world.metric('refusals_total{reason="token_review"}')).toBe(1);
    expect(world.runtime.lines.filter(({ msg }) => msg === 'request failed')).toHaveLength(1);
    world.server.reviewsFail = false;
    expect((await world.ask(asked)).status).toBe(200);
  });

  it('issues nothing without the present authority, and is not ready', async () => {
    const asked = { token: world.token('service-wallet'), body: body(await csrFor()) };
    expect((await fetch(`${world.ops}/ready`)).status).toBe(200);
    world.server.setData('secrets', 'chancery-identity-authority', { 'authorities.json': 'eA==' });
    await waitFor(async () => (await fetch(`${world.ops}/ready`)).status === 503);
    expect(await world.ask(asked)).toMatchObject({ status: 503, body: { code: 'AUTHORITY_UNAVAILABLE' } });
    expect((await fetch(`${world.ops}/alive`)).status).toBe(200);
  });

  it('limits the requests of every caller', async () => {
    const asked = { token: world.token('service-tenant'), body: body(await csrFor()) };
    const statuses = await Promise.all(
      Array.from({ length: 80 }, async () => (await world.ask(asked)).status),
    );
    const limited = statuses.filter((status) => status === 429);
    expect(limited.length).toBeGreaterThan(10);
    expect(statuses.filter((status) => status === 403).length + limited.length).toBe(80);
    const reviews = world.server.requests.filter((line) => line.includes('tokenreviews'));
    expect(reviews.length).toBe(80 - limited.length);
  });

  it('is a process that waits for the API server, and ends on a signal', { timeout: 20_000 }, async () => {
    world.server.mode = 'breaks';
    const before = world.server.requests.length;
    const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
      env: { PATH: process.env['PATH'], ...world.environment(0) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await waitFor(() => said.includes('cannot be read yet') && world.server.requests.length > before);
    world.server.mode = 'serves';
    await waitFor(() => said.includes('"msg":"started"'));
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});
