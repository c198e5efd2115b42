import { expect, test } from 'vitest';
import { credentialsOf, type KubeConfigSource } from './kubeconfig.ts';

const cluster = { server: 'https://10.0.0.1:6443', tlsServerName: 'kubernetes', skipTLSVerify: false };

function source(fill: KubeConfigSource['applyToHTTPSOptions']): KubeConfigSource {
  return { getCurrentCluster: () => cluster, applyToHTTPSOptions: fill };
}

test('credentials are those of the current user, read again each time', async () => {
  let token = 1;
  const credentials = credentialsOf(() =>
    source(async (options) => {
      options.ca = Buffer.from('ca');
      options.cert = 'cert';
      options.key = 'key';
      options.headers = { Authorization: `Bearer ${token}` };
    }),
  );
  expect(await credentials.read()).toEqual({
    server: cluster.server,
    ca: Buffer.from('ca'),
    cert: 'cert',
    key: 'key',
    servername: 'kubernetes',
    skipVerify: false,
    authorization: 'Bearer 1',
  });
  token = 2;
  expect(await credentials.read()).toMatchObject({ authorization: 'Bearer 2' });
});

test('user name and password become basic authorization', async () => {
  const credentials = credentialsOf(() =>
    source(async (options) => {
      options.auth = 'ann:secret';
    }),
  );
  expect(await credentials.read()).toMatchObject({ authorization: 'Basic YW5uOnNlY3JldA==' });
});

test('a kubeconfig without a current cluster is refused', async () => {
  const nothing: KubeConfigSource = { ...source(async () => undefined), getCurrentCluster: () => null };
  await expect(credentialsOf(() => nothing).read()).rejects.toMatchObject({ code: 'KUBECONFIG_INVALID' });
});
