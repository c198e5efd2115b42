import { describe, expect, it } from 'vitest';
import { chooseHand, hands } from './hand.ts';

const files = ['c', 'a', 'e', 'b', 'd', 'g', 'f'].map((name) => `e2e/cluster/${name}.cluster.test.ts`);
const commitOf = (hand: number) => `${hand.toString(16).padStart(8, '0')}ffffffff`;

describe('the cluster files of a run', () => {
  it('cover every file once over all parts', () => {
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

  it('are a third after a change elsewhere, with the changed cluster files', () => {
    const changed = ['components/tenant/people/users/roles.ts', 'e2e/cluster/b.cluster.test.ts'];
    const hand = chooseHand({ files, commit: commitOf(0), changed });
    expect(hand).toEqual(['a', 'b', 'd', 'g'].map((name) => `e2e/cluster/${name}.cluster.test.ts`));
  });

  it('are all files when the commit is unknown', () => {
    expect(chooseHand({ files, commit: '', changed: [] })).toEqual(files.toSorted());
  });
});
