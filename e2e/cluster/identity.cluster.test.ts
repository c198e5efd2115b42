import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { connectWorkload, type Workload } from '#kit/workload/workload.ts';
import {
  AUTHORITY_SECRET,
  account,
  audienceOf,
  authorityObjects,
  CA_CONFIG_MAP,
  issuerObjects,
  namespaceOf,
  podWithIdentity,
} from './identity-manifests.ts';
import { eventually, kubectl, run } from './kubectl.ts';

const installation = 'identity.chancery.local';
const namespace = `chancery-identity-${process.pid}`;
const elsewhere = `${namespace}-b`;
const image = (name: string) => `chancery.local/${name}:${process.env['CHANCERY_TEST_IMAGE_TAG'] ?? '0.1.0'}`;
const place = { namespace, installation, image };
const inNamespace = ['-n', namespace];
const folder = mkdtempSync(join(tmpdir(), 'chy-identity-'));

async function apply(...items: readonly object[]): Promise<void> {
  const { code, err } = await run(
    'kubectl',
    ['apply', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
  );
  if (code !== 0) throw new Error(err);
}

async function jsonPath(kind: string, name: string, path: string): Promise<string> {
  return await kubectl('get', kind, name, ...inNamespace, '-o', `jsonpath=${path}`);
}

async function issuerAddresses(): Promise<readonly string[]> {
  const addresses = await kubectl(
    ...['get', 'pods', ...inNamespace, '-l', 'app=svid-issuer', '-o', 'jsonpath={.items[*].status.podIP}'],
  );
  return addresses.split(' ').filter((address) => address !== '');
}

/** Sum of a counter over the replicas of the issuer. */
async function counted(name: string): Promise<number> {
  const values = (await issuerAddresses()).map(async (address) => {
    const text = await (await fetch(`http://${address}:9090/metrics`)).text();
    const line = text.split('\n').find((one) => one.startsWith(`chancery_svid_issuer_${name} `));
    return Number(line?.split(' ')[1] ?? 0);
  });
  return (await Promise.all(values)).reduce((sum, value) => sum + value, 0);
}

async function tokenOf(serviceAccount: string, ...more: readonly string[]): Promise<string> {
  const token = await kubectl('create', 'token', serviceAccount, '--audience', audienceOf(place), ...more);
  return token.trim();
}

/** Requests an identity from the first replica, whose pod this machine can reach. */
async function connectWith(token: string): Promise<Workload> {
  const tokenFile = join(folder, 'token');
  const caFile = join(folder, 'ca.crt');
  writeFileSync(tokenFile, token);
  writeFileSync(caFile, await jsonPath('configmap', CA_CONFIG_MAP, '{.data.ca\\.crt}'));
  const [address = ''] = await issuerAddresses();
  const issuer = { url: `https://${address}:8443`, installation, tokenFile, caFile };
  const log = createLogger({ service: 'test', level: 'silent' });
  return await connectWorkload({ issuer, log, clock: systemClock(), firstSvidTimeoutMs: 3_000 });
}

const bound = (pod: string) => ['--bound-object-kind', 'Pod', '--bound-object-name', pod];

beforeAll(async () => {
  await apply(
    namespaceOf(namespace),
    namespaceOf(elsewhere),
    ...['svid-issuer', 'service-gateway', 'validator-main', 'service-stranger'].map((name) =>
      account(place, name),
    ),
    account({ namespace: elsewhere }, 'service-gateway'),
    ...authorityObjects(place),
    ...issuerObjects(place),
    // the pods wait for the issuer
    podWithIdentity(place, 'gateway', 'service-gateway'),
    podWithIdentity(place, 'main-0', 'validator-main'),
    podWithIdentity(place, 'other-0', 'validator-main'),
  );
}, 60_000);

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await kubectl('delete', 'namespace', namespace, elsewhere, '--wait=false');
  await kubectl('delete', 'clusterrole,clusterrolebinding', namespace);
});

describe('identities without SPIRE', () => {
  test('are given to pods of the installation, by ServiceAccount and by name', async () => {
    await kubectl('rollout', 'status', 'deployment/svid-issuer', ...inNamespace, '--timeout=90s');
    await kubectl(
      'wait',
      'pod/gateway',
      'pod/main-0',
      ...inNamespace,
      '--for=condition=Ready',
      '--timeout=90s',
    );
    expect(await counted('svids_total{client_id="service-gateway"}')).toBeGreaterThan(0);
    expect(await counted('svids_total{client_id="validator-main-0"}')).toBeGreaterThan(0);
  });

  test('are not given to a pod of another name, account or namespace', async () => {
    await eventually(async () =>
      expect(await counted('refusals_total{reason="pod_name"}')).toBeGreaterThan(0),
    );
    const ready = '{.status.conditions[?(@.type=="Ready")].status}';
    expect(await jsonPath('pod', 'other-0', ready)).toBe('False');
    await expect(connectWith(await tokenOf('service-stranger', ...inNamespace))).rejects.toThrow(
      'IDENTITY_FORBIDDEN',
    );
    await expect(connectWith(await tokenOf('validator-main', ...inNamespace))).rejects.toThrow(
      'not bound to a pod',
    );
    await expect(connectWith(await tokenOf('service-gateway', '-n', elsewhere))).rejects.toThrow('namespace');
    const foreign = await kubectl(
      'create',
      'token',
      'service-gateway',
      ...inNamespace,
      '--audience',
      'somebody-else',
    );
    await expect(connectWith(foreign.trim())).rejects.toThrow('IDENTITY_TOKEN_REFUSED');
    const served = await counted('svids_total{client_id="validator-other-0"}');
    expect(served).toBe(0);
  });

  test('end with their pod', async () => {
    const token = await tokenOf('validator-main', ...inNamespace, ...bound('main-0'));
    const workload = await connectWith(token);
    expect(workload.id).toBe(`spiffe://${installation}/service/validator-main-0`);
    workload.stop();
    await kubectl('delete', 'pod', 'main-0', ...inNamespace, '--grace-period=0', '--force');
    // the API server caches token reviews for seconds
    await eventually(async () => {
      const late = await connectWith(token).catch((error: unknown) => String(error));
      if (typeof late !== 'string') late.stop();
      expect(late).toContain('IDENTITY_TOKEN_REFUSED');
    });
  });

  test('are from one authority for all replicas, and stay valid during the rotation of its root', async () => {
    const before = await jsonPath('configmap', CA_CONFIG_MAP, '{.data.ca\\.crt}');
    expect(before.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
    await kubectl(
      'annotate',
      'secret',
      AUTHORITY_SECRET,
      ...inNamespace,
      'chancery.dev/rotate-authority=now',
    );
    await eventually(async () => {
      const after = await jsonPath('configmap', CA_CONFIG_MAP, '{.data.ca\\.crt}');
      expect(after.startsWith(before)).toBe(true);
      expect(after.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    });
    const workload = await connectWith(await tokenOf('service-gateway', ...inNamespace));
    expect(workload.current().ca).toContain(before.trim());
    workload.stop();
  });

  test('need only rights on two objects and token reviews', async () => {
    const issuer = `--as=system:serviceaccount:${namespace}:svid-issuer`;
    const may = async (...what: readonly string[]) =>
      (await run('kubectl', ['auth', 'can-i', ...what, ...inNamespace, issuer])).out.trim();
    expect(await may('get', `secret/${AUTHORITY_SECRET}`)).toBe('yes');
    expect(await may('create', 'tokenreviews.authentication.k8s.io')).toBe('yes');
    for (const what of [
      ['get', 'secret/other'],
      ['list', 'secrets'],
      ['create', 'secrets'],
      ['delete', `secret/${AUTHORITY_SECRET}`],
      ['patch', 'configmap/other'],
      ['create', 'serviceaccounts/token'],
    ]) {
      expect(await may(...what), what.join(' ')).toBe('no');
    }
  });
});
