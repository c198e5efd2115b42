import { describe, expect, test } from 'vitest';
import { planSet } from './plan.ts';
import { makeFacts, makePod, makeSet, withMembers } from './testing/sets.ts';

const statefulSet = { uid: 'sts', replicas: 4, updateRevision: 'new', claimSize: '1Gi' };
/** Four members, of which three have pods of the old revision. */
const rolling = withMembers(makeFacts(4), ({ ordinal }) => ({
  pod: makePod(ordinal, { revision: ordinal === 3 ? 'new' : 'old' }),
}));

describe('updatedReplicas', () => {
  test.each([
    ['all of an up-to-date set', makeFacts(4), 4],
    ['the members of the current revision', rolling, 1],
    [
      'none while the StatefulSet has no revision for the last edit',
      { ...makeFacts(4), statefulSet: { ...statefulSet, updateRevision: undefined } },
      0,
    ],
    ['none while the StatefulSet was just written', { ...makeFacts(4), isChanging: true }, 0],
    ['none while the StatefulSet is recreated', { ...makeFacts(4), statefulSet: undefined }, 0],
    [
      'the members of the current revision during a removal',
      {
        ...withMembers(makeFacts(5), ({ ordinal }) =>
          ordinal === 0 ? {} : { pod: makePod(ordinal, { revision: 'old' }) },
        ),
        set: makeSet({ replicas: 4 }),
      },
      1,
    ],
    [
      'no outdated member during a replacement',
      withMembers(makeFacts(4), ({ ordinal }) =>
        ordinal === 3 ? { pod: makePod(3, { revision: 'old', isTerminating: true }) } : {},
      ),
      3,
    ],
  ])('counts %s', (_, facts, expected) => {
    expect(planSet(facts).status['updatedReplicas']).toBe(expected);
  });
});
