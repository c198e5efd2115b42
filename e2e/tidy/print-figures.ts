import { drawAreas, findCircles, findWideFolders, judgeLayers, listComponents, readLayers } from './areas.ts';
import { findUnusedExports } from './exports.ts';
import { isTest, listSources, withoutComments } from './repository.ts';
import { findWords } from './words.ts';

// Prints the figures of the code: areas of the components named as arguments (all without names), then the rest.
const print = (line: string): void => void process.stdout.write(`${line}\n`);

function printAreas(component: string): void {
  const graph = drawAreas(component);
  const circles = findCircles(graph);
  const layers = readLayers(component);
  const climbing = judgeLayers(graph, layers);
  print(
    `${component}: ${graph.areas.length} areas, ${layers.length} layers, ${circles.length} circles, ${climbing.length} contradictions`,
  );
  for (const circle of circles) {
    const inside = graph.imports.filter(({ from, to }) => circle.includes(from) && circle.includes(to));
    print(`  circle: ${circle.join(' ')}`);
    for (const { text } of inside) print(`    ${text}`);
  }
  for (const folder of findWideFolders(component)) print(`  more than ten folders: ${folder}`);
  for (const text of climbing) print(`  ${text}`);
}

const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;

function printLengths(): void {
  const sources = listSources().filter(({ path }) => !isTest(path));
  const lengths = sources.map(({ text }) => text.split('\n').length - 1).sort((a, b) => a - b);
  const characters = sources.reduce((sum, { text }) => sum + text.length, 0);
  const code = sources.reduce((sum, { text }) => sum + withoutComments(text).length, 0);
  const comments = Math.round((100 * (characters - code)) / characters);
  print(
    `production files: ${lengths.length}; lines p50 ${percentile(lengths, 0.5)}, p95 ${percentile(lengths, 0.95)}, most ${lengths.at(-1)}; comments ${comments} % of the characters`,
  );
}

const named = process.argv.slice(2);
for (const component of listComponents()) {
  if (named.length === 0 || named.some((name) => component.endsWith(name))) printAreas(component);
}
const { unused, onlyInTests } = findUnusedExports();
print(`exports that nothing imports: ${unused.length}; values that only tests import: ${onlyInTests.length}`);
print(`words of the earlier language: ${findWords().found.length}`);
printLengths();
