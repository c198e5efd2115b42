import { describe, expect, it } from 'vitest';
import { chooseClusterFiles, parts } from './cluster-files.ts';

const files = ['c', 'a', 'e', 'b', 'd', 'g', 'f'].map((name) => `e2e/cluster/${name}.cluster.test.ts`);
const commitOf = (number: number) => `${number.toString(16).padStart(8, '0')}ffffffff`;
const pathOf = (name: string) => `e2e/cluster/${name}.cluster.test.ts`;

describe('the cluster files of a run', () => {
  it('cover every file once over all parts', () => {
    const chosen = Array.from({ length: parts }, (_none, part) =>
      chooseClusterFiles({ files, commit: commitOf(part), changed: ['README.md'] }),
    );
    expect(chosen.flat().toSorted()).toEqual(files.toSorted());
    expect(chosen.every((part) => part.length >= 2)).toBe(true);
  });

  it.each([
    'operator/kube/lease.ts',
    'charts/chancery/values.yaml',
    'crds/x.yaml',
    'tools/images/main.ts',
    'components/kit/rpc/rpc.ts',
    'components/validator/engine.ts',
  ])('are every file behind a change of %s, in an order that the commit decides', (path) => {
    const changed = ['README.md', path];
    expect(chooseClusterFiles({ files, commit: commitOf(2), changed })).toEqual(
      ['c', 'd', 'e', 'f', 'g', 'a', 'b'].map(pathOf),
    );
  });

  it('are a third after a change elsewhere, behind the changed cluster files', () => {
    const changed = ['components/tenant/people/users/roles.ts', pathOf('b')];
    const chosen = chooseClusterFiles({ files, commit: commitOf(0), changed });
    expect(chosen).toEqual(['b', 'a', 'd', 'g'].map(pathOf));
  });

  it('begin with the journeys, which need an installation without deleted sets', () => {
    const changed = [pathOf('b'), 'operator/x.ts'];
    const chosen = chooseClusterFiles({
      files: [...files, pathOf('journeys')],
      commit: commitOf(0),
      changed,
    });
    expect(chosen.slice(0, 3)).toEqual(['journeys', 'b', 'a'].map(pathOf));
  });

  it('are all files when the commit is unknown', () => {
    expect(chooseClusterFiles({ files, commit: '', changed: [] })).toEqual(files.toSorted());
  });
});
