import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { systemRegisterId } from '#core/ledger/register-id.ts';
import { createApi } from '../harness/api.ts';
import { helmInstall, install, installKinds, type Release, readSecret, removeNamespace } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { type Forward, forward } from './forward.ts';
import { eventually, kubectl } from './kubectl.ts';

/** An installation whose release creates its ValidatorSet and the system register (`bootstrap`). */

/** Another installation takes minutes, so this is for the long form. */
const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';

const namespace = `chancery-system-register-${process.pid}`;
const release: Release = {
  name: 'bootstrapped',
  namespace,
  set: ['ingress.enabled=false', 'bootstrap.enabled=true', 'bootstrap.systemRegister.enabled=true'],
};
const registerId = systemRegisterId('default');
const tokens = z.object({ access_token: z.string() });
const voted = z.object({ consensusVotes: z.array(z.object({ validatorId: z.string() })) });

describe.runIf(full)('a release with bootstrap.systemRegister', () => {
  let gateway: Forward;

  beforeAll(async () => {
    await installKinds();
    await install(release);
    gateway = await forward(namespace, 'service-gateway', 8080);
  }, 300_000);
  afterAll(async () => {
    await gateway.stop();
    await removeNamespace(namespace);
  }, 300_000);

  explainFailures(namespace);

  async function asAdministrator(path: string): Promise<unknown> {
    const api = createApi(`http://${gateway.address}`);
    const password = await readSecret(namespace, 'chancery-admin', 'password');
    const form = { grant_type: 'password', username: 'admin@example.com', password: password.trim() };
    const { body } = await api.expect(200, 'POST', '/api/service-auth/token', { form });
    const { access_token: token } = tokens.parse(body);
    return (await api.expect(200, 'GET', path, { token })).body;
  }

  test('creates a set of four and the system register with its blueprints', async () => {
    const all = ['validatorset/main', 'register/system'];
    await kubectl('wait', '-n', namespace, '--for=condition=Ready', '--timeout=120s', ...all);
    const seen = await kubectl('get', '-n', namespace, 'reg/system', '-o', 'jsonpath={.status.registerId}');
    expect(seen).toBe(registerId);
    const found = await asAdministrator('/api/system-register');
    expect(found).toMatchObject({ registerId, status: 'ready', blueprintCount: 2 });
    await eventually(async () => {
      const docket = voted.parse(await asAdministrator(`/api/registers/${registerId}/dockets/0`));
      const four = [0, 1, 2, 3].map((ordinal) => `validator-main-${ordinal}`);
      expect(docket.consensusVotes.map(({ validatorId }) => validatorId).sort()).toEqual(four);
    });
  }, 180_000);

  test('keeps both when the release no longer has them', async () => {
    const { code, err } = await helmInstall({ ...release, set: ['ingress.enabled=false'] });
    expect([code, err]).toEqual([0, '']);
    const left = await kubectl('get', '-n', namespace, 'vset/main', 'reg/system', '-o', 'name');
    expect(left.trim().split('\n')).toHaveLength(2);
    expect(await asAdministrator('/api/system-register')).toMatchObject({ registerId, status: 'ready' });
  }, 180_000);
});
