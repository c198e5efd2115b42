import { describe, expect, it } from 'vitest';
import {
  type AreaGraph,
  drawAreas,
  findCircles,
  findWideFolders,
  judgeLayers,
  listComponents,
  readLayers,
} from './areas.ts';

const components = listComponents();

function graphOf(...imports: readonly (readonly [string, string])[]): AreaGraph {
  return {
    component: 'components/x',
    areas: [...new Set(imports.flat())],
    imports: imports.map(([from, to]) => ({ from, to, text: `${from}/a.ts -> ${to}/b.ts` })),
  };
}

describe('the judgement of areas', () => {
  it('finds circles, also through files at the root', () => {
    const graph = graphOf(
      ['a', 'b'],
      ['b', 'engine.ts'],
      ['engine.ts', 'a'],
      ['c', 'a'],
      ['d', 'e'],
      ['e', 'd'],
    );
    expect(findCircles(graph)).toEqual([
      ['a', 'b', 'engine.ts'],
      ['d', 'e'],
    ]);
  });

  it('refuses imports into the own or a higher line, and areas on no line', () => {
    const graph = graphOf(
      ['chain/sealing', 'chain/pool'],
      ['disk', 'chain/pool'],
      ['a', 'b'],
      ['loose', 'disk'],
    );
    const layers = [['a', 'b'], ['chain'], ['disk'], ['gone']];
    expect(judgeLayers(graph, layers)).toEqual([
      'components/x/loose is on no line of "Layers" in README.md',
      '"Layers" of components/x/README.md names gone, which has no files',
      'disk/a.ts -> chain/pool/b.ts imports its own or a higher layer',
      'a/a.ts -> b/b.ts imports its own or a higher layer',
    ]);
  });
});

describe.each(components)('%s', (component) => {
  const graph = drawAreas(component);

  it('has areas that import each other in no circle', () => {
    expect(graph.areas.length).toBeGreaterThan(2);
    expect(findCircles(graph)).toEqual([]);
  });

  it('has the layers that its README lists', () => {
    const hasFolders = graph.areas.some((area) => !area.endsWith('.ts'));
    expect(judgeLayers(graph, readLayers(component))).toEqual([]);
    expect(readLayers(component).length > 0).toBe(hasFolders);
  });

  it('has at most ten folders in one', () => {
    // In kit one folder is one door.
    if (component !== 'components/kit') expect(findWideFolders(component)).toEqual([]);
  });
});
