import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import type { ClusterAccess } from './credentials.ts';
import { HttpApi } from './http.ts';
import { make, testMetrics, widgets } from './testing/fixtures.ts';

let authority: TestAuthority;
let server: Server;
let timing: ManualTiming;
let address: string;

/** The server answers with the common name of the client's certificate. */
beforeEach(async () => {
  authority = await testAuthority();
  timing = manualTiming();
  const material = await authority.issue('server');
  server = createServer(
    { ...material, requestCert: true, rejectUnauthorized: true },
    ({ socket }, response) => {
      const peer = socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : undefined;
      response.end(JSON.stringify(make(widgets, String(peer))));
    },
  );
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function withApi<T>(read: () => Promise<ClusterAccess>, act: (api: HttpApi) => Promise<T>): Promise<T> {
  const api = new HttpApi({ credentials: { read }, timing, metrics: testMetrics().metrics });
  try {
    return await act(api);
  } finally {
    await api.close();
  }
}

const getMe = { verb: 'get', resource: widgets, namespace: 'acme', name: 'me', retries: 0 } as const;

test('the client certificate is sent, and a rotated one on new connections', async () => {
  let name = 'first';
  const read = async () => {
    const { key, cert } = await authority.issue(name);
    return { server: address, key, cert, skipVerify: true };
  };
  await withApi(read, async (api) => {
    expect(await api.call(getMe)).toMatchObject({ metadata: { name: 'first' } });
    name = 'second';
    await timing.advance(61_000);
    expect(await api.call(getMe)).toMatchObject({ metadata: { name: 'second' } });
  });
});

test.each(['another authority', 'another name'])(
  'a server with a certificate of %s is refused',
  async (which) => {
    const other = await testAuthority();
    const { key, cert } = await authority.issue('client');
    const ca = which === 'another name' ? authority.caPem : other.caPem;
    const refused = withApi(
      async () => ({ server: address, key, cert, ca }),
      (api) => api.call(getMe),
    );
    const message = which === 'another name' ? /altname|does not match/i : /certificate|issuer|signature/i;
    await expect(refused).rejects.toMatchObject({
      reason: 'Network',
      message: expect.stringMatching(message),
    });
  },
);
