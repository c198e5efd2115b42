import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseBlueprint } from '../model/parse.ts';
import type { ActionMark, DiagramSource } from './graph.ts';
import { drawMermaid } from './mermaid.ts';
import { drawDiagram } from './svg.ts';

const file = new URL('../vectors/site-permit.json', import.meta.url);
const parsed = parseBlueprint(JSON.parse(readFileSync(file, 'utf8')) as unknown);
if (!('blueprint' in parsed)) throw new Error('no blueprint');
const sitePermit: DiagramSource = parsed.blueprint;
const marks = new Map<number, ActionMark>([
  [0, 'done'],
  [1, 'timedOut'],
  [2, 'current'],
  [3, 'blocked'],
]);

function named(text: string): DiagramSource {
  return {
    title: text,
    participants: [{ id: 'p', name: text }],
    actions: [
      {
        id: 0,
        title: text,
        sender: 'p',
        isStartingAction: true,
        routes: [{ id: text, nextActionIds: [0, 7] }],
      },
    ],
  };
}

/** Names and order of the tags of well-formed XML; throws for anything else. */
function tagsOf(xml: string): string[] {
  const open: string[] = [];
  const tags: string[] = [];
  const rest = xml.replaceAll(
    /<(\/?)([a-zA-Z]+)((?: [a-zA-Z-]+="[^"<&]*")*)(\/?)>/g,
    (...[, close, name, , empty]) => {
      if (close === '/' && open.pop() !== name) throw new Error(`closes ${name}`);
      if (close === '' && empty === '') open.push(String(name));
      tags.push(String(name));
      return '';
    },
  );
  if (open.length > 0 || /[<>]|&(?!(?:amp|lt|gt|quot|#39);)/.test(rest)) throw new Error('not well-formed');
  return tags;
}

describe('the diagram of a definition', () => {
  it('draws every action and edge of the site permit, the same each time', () => {
    const svg = drawDiagram(sitePermit, marks);
    const tags = tagsOf(svg);
    expect(tags.filter((tag) => tag === 'rect')).toHaveLength(6);
    expect(svg.match(/marker-end=/g)).toHaveLength(10);
    drawDiagram(named('another'));
    expect(drawDiagram(sitePermit, marks)).toBe(svg);
    expect(drawMermaid(sitePermit, marks)).toBe(drawMermaid(sitePermit, marks));
  });

  it('tells marks apart by sign, word and border', () => {
    const svg = drawDiagram(sitePermit, marks);
    for (const sign of ['✓', '▶', '⏸', '⌛', ', done', ', current', ', blocked', ', timed out']) {
      expect(svg).toContain(sign);
      expect(drawDiagram(sitePermit)).not.toContain(sign);
      expect(drawMermaid(sitePermit, marks)).toContain(sign);
    }
  });

  it('writes the flow as Mermaid', () => {
    expect(drawMermaid(sitePermit, new Map([[0, 'done']])).split('\n')).toEqual(
      expect.arrayContaining([
        'flowchart TB',
        '  start(["Start"])',
        '  a0["✓ Apply<br/>Applicant, done"]',
        '  a1["Safety review<br/>Safety board"]',
        '  start --> a0',
        '  a0 -->|"risky"| a1',
        '  a0 ==>|"plain"| a2',
        '  a1 -.->|"rejection"| a0',
        '  a2 ==>|"refused"| finish',
        '  class a0 done',
      ]),
    );
  });

  it('lets no text of a definition become markup', () => {
    const part = fc.constantFrom(
      '<script>',
      '&',
      '"',
      "'",
      ']]>',
      '-->',
      '\u0000',
      '\ud800',
      '\u202e',
      ';',
      '#',
      'end',
      '\n',
      'ä',
    );
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
        const hostile = named(parts.join(''));
        const plain = tagsOf(drawDiagram(named('x')));
        expect(tagsOf(drawDiagram(hostile))).toEqual(plain);
        const lines = drawMermaid(hostile).split('\n');
        expect(lines).toHaveLength(drawMermaid(named('x')).split('\n').length);
        for (const line of lines)
          expect(line.replaceAll('<br/>', '')).not.toMatch(/<|script>|["][^"]*["][^"|\])]*["]/);
      }),
      { numRuns: 50 },
    );
  });
});
