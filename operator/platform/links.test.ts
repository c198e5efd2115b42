import { expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { createLinks } from './links.ts';
import { testInstallation } from './testing/installation.fixture.ts';

/** Links whose identity comes at the given tries; the number of tries so far. */
function linksWith(trustDomain: string, goodFrom = 1) {
  const tries = { count: 0, stopped: 0 };
  const stop = () => {
    tries.stopped += 1;
  };
  const workload: Workload = {
    id: `spiffe://${trustDomain}/service/service-operator`,
    trustDomain,
    current: () => {
      throw new Error('nobody connects here');
    },
    onRotate: () => () => undefined,
    stop,
  };
  const links = createLinks({
    runtime: testRuntime('operator', { level: 'silent' }),
    guard: () => 1_000,
    connect: async () => {
      tries.count += 1;
      if (tries.count < goodFrom) throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'none yet');
      return workload;
    },
  });
  return { links, tries };
}

test('an identity that was prepared is there when it is needed, and was asked for once', async () => {
  const { links, tries } = linksWith('acme.chancery.local');
  links.prepare();
  const installation = testInstallation();
  const link = await links.of(installation);
  expect(await links.of(installation)).toBe(link);
  expect(tries.count).toBe(1);
  links.stop();
  await expect.poll(() => tries.stopped).toBe(1);
});

test('one that did not come ahead of time is asked for again', async () => {
  const { links, tries } = linksWith('acme.chancery.local', 2);
  links.prepare();
  await expect.poll(() => tries.count).toBe(1);
  await expect(links.of(testInstallation())).resolves.toMatchObject({ guard: expect.any(Function) });
  expect(tries.count).toBe(2);
});

test('another trust domain is refused', async () => {
  const { links } = linksWith('other.chancery.local');
  await expect(links.of(testInstallation())).rejects.toMatchObject({ reason: 'DependencyNotReady' });
});
