import {
  type ActionMarks,
  buildGraph,
  type DiagramEdge,
  type DiagramNode,
  type DiagramSource,
  MARK_SIGNS,
} from './graph.ts';

const classes = [
  'classDef done fill:#e3f4e3,stroke:#1b6e1b,stroke-width:2px',
  'classDef current fill:#e2ecfb,stroke:#0b4aa2,stroke-width:4px',
  'classDef blocked fill:#fdf1d8,stroke:#8a5a00,stroke-dasharray:8 4',
  'classDef timedOut fill:#fbe3e3,stroke:#a01818,stroke-dasharray:2 4',
] as const;

/** A definition as the text of a Mermaid flowchart, the same for the same input. */
export function drawMermaid(source: DiagramSource, marks: ActionMarks = new Map()): string {
  const { nodes, edges } = buildGraph(source, marks);
  const marked = nodes.flatMap(({ key, mark }) =>
    mark === undefined ? [] : [`class ${nodeId(key)} ${mark}`],
  );
  const lines = [
    ...nodes.map(nodeLine),
    ...edges.map(edgeLine),
    ...(marked.length === 0 ? [] : classes),
    ...marked,
  ];
  return `flowchart TB\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

/** `end` is a word of Mermaid. */
function nodeId(key: string): string {
  return key === 'end' ? 'finish' : key;
}

function nodeLine({ key, kind, title, actor, mark }: DiagramNode): string {
  if (kind !== 'action') return `${nodeId(key)}(["${title}"])`;
  const [sign, state] =
    mark === undefined ? ['', ''] : [`${MARK_SIGNS[mark].sign} `, `, ${MARK_SIGNS[mark].text}`];
  return `${key}["${sign}${escapeLabel(title)}<br/>${escapeLabel(actor)}${state}"]`;
}

function edgeLine({ from, to, label, kind }: DiagramEdge): string {
  const arrow = { route: '-->', default: '==>', rejection: '-.->' }[kind];
  const text = label === '' ? '' : `|"${escapeLabel(label)}"|`;
  return `${nodeId(from)} ${arrow}${text} ${nodeId(to)}`;
}

/** Everything but letters, digits and plain punctuation becomes an entity of Mermaid, which ends no label. */
function escapeLabel(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .replaceAll(/[^\p{L}\p{M}\p{N} .,:()/-]/gu, (character) => `#${character.codePointAt(0)};`);
}
