import { drawAreas, findCircles, findWideFolders, judgeLayers, listComponents, readLayers } from './areas.ts';

// prints the areas of the named components (all without names): circles, imports that climb, wide folders
const named = process.argv.slice(2);
for (const component of listComponents().filter(
  (path) => named.length === 0 || named.some((name) => path.endsWith(name)),
)) {
  const graph = drawAreas(component);
  const circles = findCircles(graph);
  const layers = readLayers(component);
  const lines = [
    `${component}: ${graph.areas.length} areas, ${circles.length} circles, ${layers.length} layers`,
    ...circles.map((circle) => `  circle: ${circle.join(' ')}`),
    ...findWideFolders(component).map((folder) => `  more than ten folders: ${folder}`),
    ...judgeLayers(graph, layers).map((text) => `  ${text}`),
  ];
  if (named.length > 0)
    for (const circle of circles)
      for (const { from, to, text } of graph.imports)
        if (circle.includes(from) && circle.includes(to)) lines.push(`  in a circle: ${text}`);
  process.stdout.write(`${lines.join('\n')}\n`);
}
