import { describe, expect, it } from 'vitest';
import { chooseHand, hands } from './hand.ts';

const files = ['c', 'a', 'e', 'b', 'd', 'g', 'f'].map((name) => `e2e/cluster/${name}.cluster.test.ts`);
const commitOf = (hand: number) => `${hand.toString(16).padStart(8, '0')}ffffffff`;

describe('the hand of cluster files that a run plays', () => {
  it('leaves no file out over all hands, and takes none twice', () => {
    const played = Array.from({ length: hands }, (_none, hand) =>
      chooseHand({ files, commit: commitOf(hand), changed: ['README.md'] }),
    );
    expect(played.flat().toSorted()).toEqual(files.toSorted());
    expect(played.every((hand) => hand.length >= 2)).toBe(true);
  });

  it.each([
    'operator/kube/lease.ts',
    'charts/chancery/values.yaml',
    'crds/x.yaml',
    'tools/images/main.ts',
    'components/kit/rpc/rpc.ts',
    'components/validator/engine.ts',
  ])('is every file behind a change of %s', (path) => {
    expect(chooseHand({ files, commit: commitOf(1), changed: ['README.md', path] })).toEqual(
      files.toSorted(),
    );
  });

  it('is a third behind a change elsewhere, with the cluster files that changed', () => {
    const changed = ['components/tenant/users/roles.ts', 'e2e/cluster/b.cluster.test.ts'];
    const hand = chooseHand({ files, commit: commitOf(0), changed });
    expect(hand).toEqual(['a', 'b', 'd', 'g'].map((name) => `e2e/cluster/${name}.cluster.test.ts`));
  });

  it('is every file where the commit is not known', () => {
    expect(chooseHand({ files, commit: '', changed: [] })).toEqual(files.toSorted());
  });
});
