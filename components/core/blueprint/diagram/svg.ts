import { graphlib, layout } from '@dagrejs/dagre';
import type { ActionMark } from './graph.ts';
import {
  type ActionMarks,
  buildGraph,
  type DiagramEdge,
  type DiagramNode,
  type DiagramSource,
  MARK_SIGNS,
} from './graph.ts';

const nodeSize = { width: 220, height: 64 } as const;
const terminalSize = { width: 72, height: 32 } as const;
const maxCharacters = 28;
const labelSize = { height: 16, widthOfCharacter: 7 } as const;
const margin = 16;

/** Fill, border and dashes of a mark; the dashes tell them apart in black and white. */
const markStyles: Readonly<Record<ActionMark, string>> = {
  done: 'fill="#e3f4e3" stroke="#1b6e1b" stroke-width="2"',
  current: 'fill="#e2ecfb" stroke="#0b4aa2" stroke-width="4"',
  blocked: 'fill="#fdf1d8" stroke="#8a5a00" stroke-width="2" stroke-dasharray="8 4"',
  timedOut: 'fill="#fbe3e3" stroke="#a01818" stroke-width="2" stroke-dasharray="2 4"',
};
const plainStyle = 'fill="#ffffff" stroke="#444444" stroke-width="1"';

const edgeStyles: Readonly<Record<DiagramEdge['kind'], string>> = {
  route: 'stroke="#444444"',
  default: 'stroke="#444444" stroke-width="2"',
  rejection: 'stroke="#a01818" stroke-dasharray="6 4"',
};

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A definition as SVG, the same text for the same input. Marks have a sign, a word and a border of their own. */
export function drawDiagram(source: DiagramSource, marks: ActionMarks = new Map()): string {
  const { nodes, edges } = buildGraph(source, marks);
  const graph = layOut(nodes, edges);
  const { width = 0, height = 0 } = graph.graph();
  const size = `${rounded(width)} ${rounded(height)}`;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 ${size}" font-family="sans-serif" font-size="13">`,
    `<title>${escapeXml(source.title)}</title>`,
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
    '<path d="M0 0L8 4L0 8z" fill="#444444"/></marker></defs>',
    ...edges.map((edge, index) => drawEdge(edge, graph.edge(edge.from, edge.to, String(index)))),
    ...nodes.map((node) => drawNode(node, graph.node(node.key))),
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

function layOut(nodes: readonly DiagramNode[], edges: readonly DiagramEdge[]) {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: 40, ranksep: 56, marginx: margin, marginy: margin });
  for (const { key, kind } of nodes) graph.setNode(key, { ...(kind === 'action' ? nodeSize : terminalSize) });
  edges.forEach(({ from, to, label }, index) => {
    const width = shortened(label).length * labelSize.widthOfCharacter;
    graph.setEdge(
      from,
      to,
      { width, height: label === '' ? 0 : labelSize.height, labelpos: 'c' },
      String(index),
    );
  });
  layout(graph);
  return graph;
}

function drawNode({ key, kind, title, actor, mark }: DiagramNode, at: Point): string {
  const { width, height } = kind === 'action' ? nodeSize : terminalSize;
  const [x, y] = [rounded(at.x - width / 2), rounded(at.y - height / 2)];
  const radius = kind === 'action' ? 6 : height / 2;
  const style = mark === undefined ? plainStyle : markStyles[mark];
  const box = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}" ${style}/>`;
  const open = `<g id="${key}">`;
  if (kind !== 'action') return `${open}${box}${drawText(title, { x: at.x, y: at.y + 4 })}</g>`;
  const state = mark === undefined ? '' : ` ${MARK_SIGNS[mark].text}`;
  const sign = mark === undefined ? '' : `${MARK_SIGNS[mark].sign} `;
  const tip = `<title>${escapeXml(`${title} (${actor})${state}`)}</title>`;
  const lines = [
    drawText(`${sign}${shortened(title)}`, { x: at.x, y: at.y - 6 }, ' font-weight="bold"'),
    drawText(`${shortened(actor)}${mark === undefined ? '' : `,${state}`}`, { x: at.x, y: at.y + 16 }),
  ];
  return `${open}${tip}${box}${lines.join('')}</g>`;
}

function drawEdge(
  { label, kind }: DiagramEdge,
  { points, x, y }: { readonly points: readonly Point[]; readonly x?: number; readonly y?: number },
): string {
  const [first, ...rest] = points.map((point) => `${rounded(point.x)} ${rounded(point.y)}`);
  const path = `<path d="M${first}L${rest.join('L')}" fill="none" ${edgeStyles[kind]} marker-end="url(#arrow)"/>`;
  if (label === '' || x === undefined || y === undefined) return path;
  return `${path}${drawText(shortened(label), { x, y: y + 4 }, ' font-size="11" stroke="#ffffff" stroke-width="3" paint-order="stroke"')}`;
}

function drawText(text: string, { x, y }: Point, attributes = ''): string {
  return `<text x="${rounded(x)}" y="${rounded(y)}" text-anchor="middle"${attributes}>${escapeXml(text)}</text>`;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function shortened(text: string): string {
  const characters = [...text];
  return characters.length <= maxCharacters ? text : `${characters.slice(0, maxCharacters - 1).join('')}…`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text for XML 1.0. Characters that it cannot contain, and those that change the direction of text, are left out. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu, ' ')
    .replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
