import { expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { type Installation, parseInstallation } from '../api/installation.ts';
import { createServiceSessions } from './sessions.ts';
import { installationMap, installationText, spireText } from './testing/installation.fixture.ts';
import { connectMembers } from './validators.ts';

const runtime = testRuntime('operator', { level: 'silent' });

function describe(namespace: string, text: object = installationText): Installation {
  return parseInstallation([installationMap(text, namespace)]);
}

const expiresAtMs = Date.UTC(2027, 0, 1);

/** An identity without keys that records whether it was stopped. */
function identityOf(trustDomain: string, onStop: () => void = () => undefined): Workload {
  const id = `spiffe://${trustDomain}/service/service-operator`;
  const unused = (): never => {
    throw new AppError('internal', 'UNUSED', 'nothing is called');
  };
  return {
    id,
    trustDomain,
    current: () => ({
      id,
      expiresAtMs,
      get key() {
        return unused();
      },
      get cert() {
        return unused();
      },
      get ca() {
        return unused();
      },
    }),
    onRotate: () => () => undefined,
    stop: onStop,
  };
}

function linksWith(connect: (installation: Installation) => Promise<Workload>) {
  return createServiceSessions({ runtime, guard: () => 10_000, connect });
}

test('each namespace with its own issuer has one identity', async () => {
  const opened: string[] = [];
  const sessions = linksWith(async ({ namespace, installation }) => {
    opened.push(namespace);
    return identityOf(installation);
  });
  const [acme, beta] = [describe('acme'), describe('beta')];
  const [one, again, other] = await Promise.all([sessions.of(acme), sessions.of(acme), sessions.of(beta)]);
  expect(again).toBe(one);
  // installations of the same name in two namespaces are different
  expect(other.workload).not.toBe(one.workload);
  expect(opened).toEqual(['acme', 'beta']);
  const metrics = await runtime.telemetry.registry.metrics();
  for (const namespace of opened)
    expect(metrics).toContain(
      `chancery_operator_identity_expiry_timestamp_seconds{namespace="${namespace}"} ${expiresAtMs / 1_000}`,
    );
});

test('with SPIRE one identity serves the installations of its trust domain only', async () => {
  let opened = 0;
  const sessions = linksWith(async () => {
    opened += 1;
    return identityOf('acme.chancery.local');
  });
  const one = await sessions.of(describe('acme', spireText));
  const two = await sessions.of(describe('beta', spireText));
  expect([opened, two.workload]).toEqual([1, one.workload]);
  const foreign: Installation = { ...describe('gamma', spireText), installation: 'gamma.example' };
  await expect(sessions.of(foreign)).rejects.toThrow(
    'The operator has an identity in trust domain acme.chancery.local, but not in gamma.example',
  );
});

test('a failed identity is requested again, and stopping stops all identities', async () => {
  let isAway = true;
  const ended: string[] = [];
  const sessions = linksWith(async ({ namespace, installation }) => {
    if (isAway) throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'the issuer is away');
    return identityOf(installation, () => void ended.push(namespace));
  });
  const [acme, beta] = [describe('acme'), describe('beta')];
  await expect(sessions.of(acme)).rejects.toThrow('the issuer is away');
  isAway = false;
  await sessions.of(acme);
  await sessions.of(beta);
  sessions.stop();
  await expect.poll(() => ended.toSorted()).toEqual(['acme', 'beta']);
});

test('a token is kept while its issuer is unchanged; without one no member can be queried', async () => {
  const sessions = linksWith(async ({ installation }) => identityOf(installation));
  const later = describe('acme', { ...installationText, version: '9.9.9' });
  const [one, two] = [await sessions.of(describe('acme')), await sessions.of(later)];
  expect([two === one, two.token === one.token]).toEqual([false, true]);
  const { mtls } = later.endpoints.tenant;
  const tenant = { ...later.endpoints.tenant, mtls: { ...mtls, port: mtls.port + 1 } };
  const moved = { ...later, endpoints: { ...later.endpoints, tenant } };
  expect((await sessions.of(moved)).token).not.toBe(one.token);
  const members = connectMembers(sessions);
  await expect(members.ready(later)).rejects.toMatchObject({ code: 'UNUSED' });
  members.stop();
});
