import { afterEach, beforeEach, expect, test } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { connectWorkload } from '#kit/workload/workload.ts';
import { audience, IssuerWorld, installation } from '../../components/svid-issuer/issuer.fixture.ts';
import type { Api, ApiRequest } from '../kube/api.ts';
import { foreignIssuer } from './foreign-identity.ts';
import { installationText, testInstallation } from './testing/installation.fixture.ts';

let world: IssuerWorld;
let calls: ApiRequest[];

beforeEach(async () => {
  world = await IssuerWorld.open();
  calls = [];
});

afterEach(() => world.stop());

/** A cluster with the requested token and ConfigMap. */
function cluster(data: object): Api {
  const answers: Readonly<Record<string, unknown>> = {
    serviceaccounts: { kind: 'TokenRequest', status: { token: world.token('service-operator', {}) } },
    configmaps: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'chancery-identity-ca' }, data },
  };
  return {
    call: async (request) => {
      calls.push(request);
      return answers[request.resource.plural];
    },
    watch: () => Promise.reject(new Error('nothing is watched')),
  };
}

function issuerOf(api: Api) {
  const identity = { provider: 'serviceAccount', issuer: world.url } as const;
  const found = testInstallation({ ...installationText, identity });
  if (found.identity.provider !== 'serviceAccount') throw new Error('not as written');
  return foreignIssuer(api, { ...found, identity: found.identity }, 'service-operator');
}

test('the operator gets its identity from the issuer of another namespace', async () => {
  const { log, clock } = testRuntime('operator', { level: 'silent' });
  const issuer = issuerOf(cluster({ 'ca.crt': world.bundle }));
  const workload = await connectWorkload({ issuer, log, clock, firstSvidTimeoutMs: 5_000 });
  expect([workload.trustDomain, workload.id]).toEqual([
    installation,
    `spiffe://${installation}/service/service-operator`,
  ]);
  workload.stop();
  const tokenRequest = calls.find(({ resource }) => resource.plural === 'serviceaccounts');
  expect(tokenRequest).toMatchObject({
    verb: 'create',
    namespace: 'acme',
    name: 'service-operator',
    subresource: 'token',
    body: { spec: { audiences: [audience], expirationSeconds: 600 } },
  });
});

test('a missing CA is reported', async () => {
  const { log, clock } = testRuntime('operator', { level: 'silent' });
  const issuer = issuerOf(cluster({}));
  await expect(connectWorkload({ issuer, log, clock, firstSvidTimeoutMs: 100 })).rejects.toThrow(
    'ConfigMap chancery-identity-ca of namespace acme has no key ca.crt yet',
  );
});
