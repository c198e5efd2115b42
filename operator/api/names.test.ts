import { describe, expect, test } from 'vitest';
import {
  annotations,
  claimName,
  fieldManagers,
  findOrdinal,
  forceDeletion,
  idempotencyKey,
  isPaused,
  MAX_REPLICAS,
  nameLimits,
  podName,
  spiffeId,
  validatorId,
  validatorSetNames,
} from './names.ts';

const uid = '0b0e6a1e-7b57-4c0f-9d0f-2d8f3f1c9a11';

describe('names of a ValidatorSet', () => {
  test('are DNS labels, also for the longest name with the highest ordinal', () => {
    const name = `a${'b'.repeat(nameLimits.validatorSet - 1)}`;
    const pod = podName(name, MAX_REPLICAS - 1);
    // a StatefulSet labels its pods with a revision: its name, a hyphen and ten characters
    for (const each of [...Object.values(validatorSetNames(name)), pod, `${name}-0123456789`]) {
      expect(each).toMatch(/^[a-z][-a-z0-9]{0,61}[a-z0-9]$/);
    }
    expect(validatorId(pod)).toMatch(/^validator-[A-Za-z0-9._-]{1,100}$/);
  });

  test('are refused for a name that the API server refuses', () => {
    for (const name of ['', '4set', 'Main', 'a.b', 'a-', 'a'.repeat(nameLimits.validatorSet + 1)]) {
      expect(() => validatorSetNames(name), name).toThrow('cannot be called');
    }
  });

  test('give the ordinal of a pod of the set, and of no other pod', () => {
    expect(findOrdinal('main', podName('main', 12))).toBe(12);
    for (const pod of ['main', 'main-', 'main-01', 'main-x', 'main-b-1', 'other-1', 'main-1-2']) {
      expect(findOrdinal('main', pod), pod).toBeUndefined();
    }
    expect(claimName('main', 3)).toBe('data-main-3');
  });

  test('give the SPIFFE id of a member', () => {
    expect(spiffeId('acme', validatorId('main-0'))).toBe('spiffe://acme/service/validator-main-0');
  });
});

test('an idempotency key is the uid, with a suffix for each further resource', () => {
  expect(idempotencyKey(uid)).toBe(uid);
  expect(idempotencyKey(uid, 'main-0')).toBe(`${uid}/main-0`);
  expect(() => idempotencyKey('')).toThrow('no uid');
});

test('only the text true pauses an object', () => {
  expect(isPaused({ annotations: { [annotations.paused]: 'true' } })).toBe(true);
  expect(isPaused({ annotations: { [annotations.paused]: 'false' } })).toBe(false);
  expect(isPaused({})).toBe(false);
});

test('only its own uid forces the deletion of an object', () => {
  expect(forceDeletion({ uid })).toBe('no');
  expect(forceDeletion({ uid, annotations: { [annotations.forceDelete]: uid } })).toBe('yes');
  expect(forceDeletion({ uid, annotations: { [annotations.forceDelete]: 'true' } })).toBe('wrong-uid');
});

test('children and status have separate field managers', () => {
  expect(fieldManagers('ValidatorSet')).toEqual({
    children: 'chancery-validatorset',
    status: 'chancery-validatorset-status',
  });
});
