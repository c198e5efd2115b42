import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { exists, importsOf, isTest, listFiles, root } from './repository.ts';

/** An import from one area of a component into another one. */
export interface AreaImport {
  readonly from: string;
  readonly to: string;
  /** `file -> file`, from the root of the repository. */
  readonly text: string;
}

/**
 * The areas of a component: its folders that hold files, and the files at its root one by one. Test equipment (folders
 * named `testing`, tests, fixtures) is left out.
 */
export interface AreaGraph {
  /** Folder of the component, from the root of the repository. */
  readonly component: string;
  readonly areas: readonly string[];
  readonly imports: readonly AreaImport[];
}

/** Components and the operator: what has areas. */
export function listComponents(): readonly string[] {
  const components = readdirSync(join(root, 'components'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `components/${entry.name}`);
  return [...components, 'operator'];
}

/** Draws the imports between the areas of a component. */
export function drawAreas(component: string): AreaGraph {
  const sources = listFiles(component).filter(({ path }) => path.endsWith('.ts') && !isTest(path));
  const imports = sources.flatMap((file) =>
    importsOf(file).flatMap(({ target }) => {
      if (target === undefined || !target.startsWith(`${component}/`) || isTest(target)) return [];
      const [from, to] = [areaOf(component, file.path), areaOf(component, target)];
      return from === to ? [] : [{ from, to, text: `${file.path} -> ${target}` }];
    }),
  );
  const areas = [...new Set(sources.map(({ path }) => areaOf(component, path)))];
  return { component, areas, imports };
}

function areaOf(component: string, path: string): string {
  const folder = posix.dirname(path);
  return posix.relative(component, folder === component ? path : folder);
}

/** Groups of areas that import each other, directly or through others; empty when areas form layers. */
export function findCircles(graph: AreaGraph): readonly (readonly string[])[] {
  const reachable = new Map(graph.areas.map((area) => [area, reachableFrom(graph, area)]));
  const reaches = (from: string, to: string): boolean => reachable.get(from)?.has(to) ?? false;
  const grouped = new Set<string>();
  return graph.areas.flatMap((area) => {
    if (grouped.has(area) || !reaches(area, area)) return [];
    const circle = graph.areas.filter((other) => reaches(area, other) && reaches(other, area));
    for (const member of circle) grouped.add(member);
    return [circle];
  });
}

function reachableFrom(graph: AreaGraph, start: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const pending = [start];
  for (let area = pending.pop(); area !== undefined; area = pending.pop()) {
    for (const { from, to } of graph.imports) {
      if (from === area && !seen.has(to)) {
        seen.add(to);
        pending.push(to);
      }
    }
  }
  return seen;
}

/** Lines of the table below `## Layers` in a component's README, the highest first; each names folders in backticks. */
export function readLayers(component: string): readonly (readonly string[])[] {
  const path = `${component}/README.md`;
  const text = exists(path) ? readFileSync(join(root, path), 'utf8') : '';
  const section = /^## Layers$([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text)?.[1] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|') && !/^\|[\s|:-]*$/.test(line));
  return rows
    .slice(1)
    .map((row) => [...(row.split('|')[2] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

/**
 * What contradicts the layers of a component's README: an area on no line, a line's area that does not exist, and each
 * import into the own or a higher line.
 */
export function judgeLayers(graph: AreaGraph, layers: readonly (readonly string[])[]): readonly string[] {
  const folders = graph.areas.filter((area) => !area.endsWith('.ts'));
  const listed = layers.flat();
  const entryOf = (area: string): string | undefined =>
    listed
      .filter((entry) => area === entry || area.startsWith(`${entry}/`))
      .sort((a, b) => b.length - a.length)[0];
  const lineOf = (entry: string): number => layers.findIndex((line) => line.includes(entry));
  const unlisted = folders.filter((area) => entryOf(area) === undefined);
  const missing = listed.filter((entry) => !folders.some((area) => entryOf(area) === entry));
  const climbing = graph.imports.filter(({ from, to }) => {
    const [above, below] = [entryOf(from), entryOf(to)];
    if (above === undefined || below === undefined || above === below) return false;
    return lineOf(below) <= lineOf(above);
  });
  return [
    ...unlisted.map((area) => `${graph.component}/${area} is on no line of "Layers" in README.md`),
    ...missing.map((entry) => `"Layers" of ${graph.component}/README.md names ${entry}, which has no files`),
    ...climbing.map(({ text }) => `${text} imports its own or a higher layer`),
  ];
}

/** Folders of a component with more than ten subfolders, test equipment and test data left out. */
export function findWideFolders(component: string): readonly string[] {
  const folders = readdirSync(join(root, component), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isDirectory() && !['node_modules', 'testing', 'vectors'].includes(entry.name))
    .map((entry) => posix.join(posix.relative(root, entry.parentPath)));
  const counts = Map.groupBy(folders, (folder) => folder);
  return [...counts].filter(([, children]) => children.length > 10).map(([folder]) => folder);
}
