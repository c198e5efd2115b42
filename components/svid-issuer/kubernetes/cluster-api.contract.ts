import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterApi } from './cluster-api.ts';

/** A cluster under test. Its Secret and ConfigMap exist, are named `roots` and `bundle`, and have no data. */
export interface ClusterUnderTest {
  readonly api: ClusterApi;
  readonly namespace: string;
  /** A token of the pod `main-0` with the ServiceAccount `validator-main`, for that audience. */
  podToken(audience: string): Promise<string> | string;
  stop(): Promise<void>;
}

/** Contract of every cluster for the issuer: the real API server, and the fake of the tests. */
export function clusterApiContract(name: string, start: () => Promise<ClusterUnderTest>): void {
  describe(`cluster API: ${name}`, () => {
    let cluster: ClusterUnderTest | undefined;
    const given = (): ClusterUnderTest => {
      if (cluster === undefined) throw new Error('not started');
      return cluster;
    };

    beforeAll(async () => {
      cluster = await start();
    });
    afterAll(async () => {
      await cluster?.stop();
    });

    it('reviews the token of a pod', async () => {
      const { api, namespace, podToken } = given();
      const review = await api.reviewToken(
        await podToken('spiffe://a/service/svid-issuer'),
        'spiffe://a/service/svid-issuer',
      );
      expect(review.authenticated).toBe(true);
      expect(review.audiences).toEqual(['spiffe://a/service/svid-issuer']);
      expect(review.user.username).toBe(`system:serviceaccount:${namespace}:validator-main`);
      expect(review.user.extra['authentication.kubernetes.io/pod-name']).toEqual(['main-0']);
    });

    it('refuses a token for another audience, and text that is no token', async () => {
      const { api, podToken } = given();
      const foreign = await podToken('spiffe://b/service/svid-issuer');
      for (const token of [foreign, 'garbage', `${foreign}x`]) {
        const review = await api.reviewToken(token, 'spiffe://a/service/svid-issuer');
        expect(review.authenticated).toBe(false);
        expect(review.audiences).toEqual([]);
      }
    });

    it('keeps data of keys that a write does not name', async () => {
      const { api } = given();
      for (const [kind, name] of [
        ['secrets', 'roots'],
        ['configmaps', 'bundle'],
      ] as const) {
        const empty = await api.read(kind, name);
        expect(empty).toMatchObject({ name, data: {} });
        const first = await api.write(kind, empty, { one: 'ä\n' });
        await api.write(kind, first, { two: '2' });
        expect((await api.read(kind, name)).data).toEqual({ one: 'ä\n', two: '2' });
      }
    });

    it('refuses a write onto an object that changed since it was read', async () => {
      const { api } = given();
      const before = await api.read('secrets', 'roots');
      await api.write('secrets', before, { one: 'mine' });
      const late = api.write('secrets', before, { one: 'late' });
      await expect(late).rejects.toMatchObject({ kind: 'conflict', code: 'KUBERNETES_CONFLICT' });
      expect((await api.read('secrets', 'roots')).data['one']).toBe('mine');
    });
  });
}
