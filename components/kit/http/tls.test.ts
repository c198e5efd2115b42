import { Agent, type RequestOptions, request } from 'node:https';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type TestAuthority, type TestIdentity, testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { createHttpServer, listenHttp, peerSpiffeId, type TlsMaterial } from './http.ts';

interface Answer {
  readonly status: number;
  readonly body: { readonly peer?: string; readonly code?: string };
  readonly serverCertificate: PeerCertificate;
}

let authority: TestAuthority;
beforeAll(async () => {
  authority = await testAuthority();
});

async function listen(identity: TestIdentity): Promise<number> {
  const app = createHttpServer({ runtime: testRuntime('service-test'), title: 'TLS', https: identity });
  app.get('/who', { config: { policy: 'Anonymous' }, schema: { hide: true } }, (incoming) => ({
    peer: peerSpiffeId(incoming),
  }));
  onTestFinished(() => app.close());
  return listenHttp(app, { host: '127.0.0.1', port: 0 });
}

/** Server verification is off, because the tests are about what the server requires. */
function ask(port: number, client: Partial<TlsMaterial>, options: RequestOptions = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = request(
    { port, host: '127.0.0.1', path: '/who', rejectUnauthorized: false, agent: false, ...client, ...options },
    (incoming) => {
      const serverCertificate = (incoming.socket as TLSSocket).getPeerCertificate();
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
      });
      incoming.on('end', () =>
        resolve({ status: incoming.statusCode ?? 0, body: JSON.parse(text), serverCertificate }),
      );
    },
  );
  outgoing.on('error', reject);
  outgoing.end();
  return promise;
}

describe('a mutual-TLS listener', () => {
  it('gives handlers the identity of the caller', async () => {
    const port = await listen(await authority.identity('service-test'));
    const answer = await ask(port, await authority.issue('service-caller'));
    expect(answer).toMatchObject({
      status: 200,
      body: { peer: `spiffe://${testInstallation}/service/service-caller` },
    });
  });

  it('refuses the connection of a client whose certificate is missing, foreign, expired or not yet valid', async () => {
    const port = await listen(await authority.identity('service-test'));
    const stranger = await testAuthority('elsewhere.example');
    const now = Date.now();
    const clients = [
      {},
      await stranger.issue('service-caller'),
      await authority.issue('service-caller', { notBeforeMs: now - 7_200_000, notAfterMs: now - 3_600_000 }),
      await authority.issue('service-caller', { notBeforeMs: now + 3_600_000, notAfterMs: now + 7_200_000 }),
    ];
    for (const client of clients) {
      const { key, cert } = client as Partial<TlsMaterial>;
      const given = key === undefined || cert === undefined ? {} : { key, cert };
      await expect(ask(port, given)).rejects.toThrow();
    }
  });

  it('answers 401 to a certificate that is no SVID with exactly one id', async () => {
    const port = await listen(await authority.identity('service-test'));
    const id = `spiffe://${testInstallation}/service/service-caller`;
    const leaves = [
      { uris: [id, `${id}-2`] },
      { uris: [] },
      { uris: ['https://example.org/service'] },
      { uris: [`spiffe://${testInstallation}/service/../admin`] },
      { certificateAuthority: true },
    ];
    for (const leaf of leaves) {
      const answer = await ask(port, await authority.issue('service-caller', leaf));
      expect(answer.status, JSON.stringify(leaf)).toBe(401);
    }
  });

  it('refuses an id whose certificate expired while its connection stayed open', async () => {
    const port = await listen(await authority.identity('service-test'));
    const client = await authority.issue('service-caller', { notAfterMs: Date.now() + 1_500 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect((await ask(port, client, { agent })).status).toBe(200);
    const refused = await waitFor(
      async () => {
        const answer = await ask(port, client, { agent });
        return answer.status === 200 ? undefined : answer;
      },
      { what: 'the certificate to expire' },
    );
    expect(refused.status).toBe(401);
  });

  it('accepts TLS 1.3 only', async () => {
    const port = await listen(await authority.identity('service-test'));
    await expect(
      ask(port, await authority.issue('service-caller'), { maxVersion: 'TLSv1.2' }),
    ).rejects.toThrow();
  });

  it('offers HTTP/1.1 and nothing else', async () => {
    const port = await listen(await authority.identity('service-test'));
    const { key, cert } = await authority.issue('service-caller');
    const { promise, resolve, reject } = Promise.withResolvers<string | false | null>();
    const ALPNProtocols = ['h2', 'http/1.1'];
    const socket = connect(
      { port, host: '127.0.0.1', key, cert, ALPNProtocols, rejectUnauthorized: false },
      () => resolve(socket.alpnProtocol),
    );
    socket.on('error', reject);
    expect(await promise).toBe('http/1.1');
    socket.destroy();
  });

  it('serves its new certificate after a rotation, and trusts the new authority', async () => {
    const identity = await authority.identity('service-before');
    const port = await listen(identity);
    const client = await authority.issue('service-caller');
    expect((await ask(port, client)).serverCertificate.subject.CN).toBe('service-before');
    const next = await testAuthority();
    identity.rotate({ ...(await next.issue('service-after')), ca: authority.caPem + next.caPem });
    expect((await ask(port, client)).serverCertificate.subject.CN).toBe('service-after');
    expect((await ask(port, await next.issue('service-caller'))).status).toBe(200);
    identity.rotate(await next.issue('service-after'));
    await expect(ask(port, client)).rejects.toThrow();
  });
});

describe('peerSpiffeId', () => {
  it('refuses plain connections', async () => {
    const app = createHttpServer({ runtime: testRuntime('service-test'), title: 'Plain' });
    app.get('/who', { config: { policy: 'Anonymous' }, schema: { hide: true } }, (incoming) => ({
      peer: peerSpiffeId(incoming),
    }));
    onTestFinished(() => app.close());
    expect((await app.inject('/who')).statusCode).toBe(401);
  });
});
