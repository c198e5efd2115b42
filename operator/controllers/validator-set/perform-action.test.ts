import { expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { ApiRequest } from '../../kube/api.ts';
import { NotLeader } from '../../kube/errors.ts';
import { FakeMembers } from '../../platform/testing/fake-members.ts';
import { testInstallation } from '../../platform/testing/installation.fixture.ts';
import { type Actor, perform } from './perform-action.ts';

const claim = { ordinal: 4, name: 'data-main-4', uid: 'claim-4', resourceVersion: '7', leftAtMs: 0 };

function actor(members = new FakeMembers()) {
  const calls: ApiRequest[] = [];
  const call = async (request: ApiRequest) => void calls.push(request);
  const made: Actor = {
    api: { call, watch: () => Promise.reject(new Error('nothing is watched')) },
    members,
    principals: members,
    installation: testInstallation(),
    namespace: 'acme',
    setName: 'main',
    signal: new AbortController().signal,
    log: testRuntime('operator', { level: 'silent' }).log,
  };
  return { made, calls, members };
}

test('the key of a removed member is destroyed, then its volume is deleted with a version precondition', async () => {
  const { made, calls, members } = actor();
  expect(await perform(made, { kind: 'discard', claim })).toBe(true);
  expect([...members.keyless]).toEqual(['validator-main-4']);
  expect(calls).toMatchObject([
    {
      verb: 'delete',
      name: 'data-main-4',
      body: { preconditions: { uid: 'claim-4', resourceVersion: '7' } },
    },
  ]);
});

test('key and volume stay while the wallet service is unavailable, and other actions continue', async () => {
  const { made, calls, members } = actor();
  members.fault = new AppError('unavailable', 'SERVICE_UNREACHABLE', 'the wallet service does not answer');
  expect(await perform(made, { kind: 'discard', claim })).toBe(false);
  expect(calls).toEqual([]);
});

test('a process that does not lead deletes nothing', async () => {
  const { made, calls, members } = actor();
  members.fault = new NotLeader();
  await expect(perform(made, { kind: 'discard', claim })).rejects.toThrow(NotLeader);
  expect(calls).toEqual([]);
});

test('the left-at annotation is set and removed', async () => {
  const { made, calls } = actor();
  await perform(made, { kind: 'note', claim, leftAtMs: Date.UTC(2026, 0, 1) });
  await perform(made, { kind: 'note', claim, leftAtMs: undefined });
  const written = (value: string | null) => ({
    verb: 'patch',
    body: { metadata: { uid: 'claim-4', annotations: { 'chancery.dev/left-at': value } } },
  });
  expect(calls).toMatchObject([written('2026-01-01T00:00:00.000Z'), written(null)]);
});
