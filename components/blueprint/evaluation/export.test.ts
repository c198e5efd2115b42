import fc from 'fast-check';
import { load } from 'js-yaml';
import { expect, it } from 'vitest';
import { type ExportFormat, exportDefinition } from './export.ts';
import { smallDefinition } from './small-definition.ts';

const exported = (value: object, format: ExportFormat) =>
  exportDefinition(JSON.stringify(value), format).text ?? '';

it('writes JSON with members in canonical order, two spaces a level', () => {
  const value = { b: [1, 'x', []], a: { '10': null, '9': {} }, '\u{1f600}': -0, '\ufb33': 1e21 };
  expect(exported(value, 'json')).toBe(`{
  "a": {
    "10": null,
    "9": {}
  },
  "b": [
    1,
    "x",
    []
  ],
  "\u{1f600}": 0,
  "\ufb33": 1e+21
}
`);
});

it('writes YAML that people can read', () => {
  const { id, title, participants } = smallDefinition;
  expect(exported({ title, id, participants }, 'yaml')).toBe(`id: invoice-approval
participants:
  - id: supplier
    name: Supplier
  - id: buyer
    name: Buyer
title: Approval of an invoice
`);
});

it.each(['json', 'yaml'] as const)('reads back as the same data from %s', { timeout: 30_000 }, (format) => {
  const read = format === 'json' ? JSON.parse : load;
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      'yes',
      'NO',
      '~',
      'null',
      '1e3',
      '0o7',
      '1:30',
      '2026-01-01',
      '=',
      '<<',
      ' x',
      'a: b',
      '- a',
    ),
    fc.constantFrom(
      'a\nb\n',
      '\n',
      '\t',
      '\r\n',
      '"',
      "'",
      '#',
      '|',
      '>-',
      '&a',
      '*a',
      '!!str',
      '%',
      '@',
      '`',
    ),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      texts,
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(
        texts.filter((name) => name !== '__proto__'),
        tie('tree'),
        { maxKeys: 4, noNullPrototype: true },
      ),
    ),
  }));
  fc.assert(
    fc.property(tree, (value) => {
      const definition = JSON.parse(JSON.stringify({ value }));
      expect(read(exported(definition, format))).toEqual(definition);
    }),
    { numRuns: 200 },
  );
});

it.each(['json', 'yaml'] as const)('writes no document of more than 1 MiB as %s', (format) => {
  let deep: unknown = Array(200_000).fill(1);
  for (let depth = 0; depth < 60; depth += 1) deep = [deep];
  const startedAt = performance.now();
  for (const value of [{ deep }, { long: 'x'.repeat(1024 * 1024) }, { wide: Array(170_000).fill([]) }]) {
    expect(exportDefinition(JSON.stringify(value), format)).toEqual({});
  }
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  const most = 1024 * 1024 - '{\n  "long": ""\n}\n'.length;
  expect(exported({ long: 'x'.repeat(most) }, 'json')).toHaveLength(1024 * 1024);
});
