import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clusterApiContract } from './cluster-api.contract.ts';
import { HttpClusterApi } from './http-cluster-api.ts';
import { FakeApiServer } from './testing/fake-api-server.ts';

async function open() {
  const server = await new FakeApiServer().start();
  server.put('secrets', 'roots');
  server.put('configmaps', 'bundle');
  const { host, port, credentialsDir, namespace } = server;
  return { server, api: new HttpClusterApi({ host, port, credentialsDir, namespace }) };
}

clusterApiContract('fake', async () => {
  const { server, api } = await open();
  const username = `system:serviceaccount:${server.namespace}:validator-main`;
  return {
    api,
    namespace: server.namespace,
    podToken: (audience) => server.token({ username, audiences: [audience], pod: 'main-0' }),
    stop: async () => {
      await api.close();
      await server.stop();
    },
  };
});

describe('the API server over HTTPS', () => {
  let at: Awaited<ReturnType<typeof open>>;

  beforeEach(async () => {
    at = await open();
  });
  afterEach(async () => {
    await at.api.close();
    await at.server.stop();
  });

  it('is called with the present token', async () => {
    await at.api.read('secrets', 'roots');
    at.server.rotateOwnToken();
    expect((await at.api.read('secrets', 'roots')).name).toBe('roots');
  });

  it('may change its certificate authority', async () => {
    await at.api.read('secrets', 'roots');
    await at.server.newCertificate();
    expect((await at.api.read('secrets', 'roots')).name).toBe('roots');
  });

  it('gets no token when its certificate is of another authority', async () => {
    const other = await new FakeApiServer().start();
    const { host, credentialsDir, namespace } = at.server;
    const api = new HttpClusterApi({ host, port: other.port, credentialsDir, namespace });
    await expect(api.read('secrets', 'roots')).rejects.toMatchObject({ code: 'KUBERNETES_UNAVAILABLE' });
    expect(other.requests).toEqual([]);
    await api.close();
    await other.stop();
  });

  it('reports the missing permission', async () => {
    await expect(at.api.read('secrets', 'nobody')).rejects.toMatchObject({ kind: 'not_found' });
    at.server.mode = 'forbids';
    await expect(at.api.read('secrets', 'roots')).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('forbidden by RBAC'),
    });
    at.server.mode = 'breaks';
    await expect(at.api.reviewToken('x', 'y')).rejects.toMatchObject({ code: 'TOKEN_REVIEW_UNAVAILABLE' });
  });

  it('is unavailable while the pod has no credentials', async () => {
    const { host, port, namespace } = at.server;
    const api = new HttpClusterApi({ host, port, namespace, credentialsDir: '/nowhere' });
    await expect(api.read('secrets', 'roots')).rejects.toMatchObject({ code: 'KUBERNETES_UNAVAILABLE' });
  });
});
