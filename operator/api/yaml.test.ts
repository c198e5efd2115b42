import { describe, expect, test } from 'vitest';
import { toYaml } from './yaml.ts';

describe('YAML', () => {
  test('is written in block style, lists at the depth of their key', () => {
    const data = { a: { b: [1, { c: true, d: { e: null } }, [2, 3]], f: {}, g: [] }, h: undefined };
    expect(toYaml(data)).toBe(
      [
        'a:',
        '  b:',
        '  - 1',
        '  - c: true',
        '    d:',
        '      e: null',
        '  - - 2',
        '    - 3',
        '  f: {}',
        '  g: []',
        '',
      ].join('\n'),
    );
  });

  test.each([
    ['plain words', 'plain words'],
    ['', "''"],
    ['true', "'true'"],
    ['No', "'No'"],
    ['null', "'null'"],
    ['1.0', "'1.0'"],
    ['0x1f', "'0x1f'"],
    ['.5', "'.5'"],
    ['~', "'~'"],
    ['a: b', "'a: b'"],
    ['a #b', "'a #b'"],
    [' a', "' a'"],
    ['- a', "'- a'"],
    ["it's", `"it's"`],
    [`'"`, `'''"'`],
    ['*', "'*'"],
    ['{a}', "'{a}'"],
    ['a\tb', '"a\\tb"'],
    ['\u00e9', '"\u00e9"'],
    ['.spec.replicas', '.spec.replicas'],
  ])('writes %j so that it reads back unchanged', (value, expected) => {
    expect(toYaml({ k: value })).toBe(`k: ${expected}\n`);
  });

  test('quotes keys that are ambiguous without quotes', () => {
    expect(toYaml({ y: 1, 'a: b': 2, 'x-kubernetes-list-type': 3 })).toBe(
      "'y': 1\n'a: b': 2\nx-kubernetes-list-type: 3\n",
    );
  });

  test('folds long texts at spaces and keeps line breaks of others', () => {
    const long = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ');
    const lines = toYaml({ k: { l: long } }).split('\n');
    expect(lines.slice(0, 2)).toEqual(['k:', '  l: >-']);
    expect(lines.every((line) => line.length <= 110)).toBe(true);
    expect(
      lines
        .slice(2, -1)
        .map((line) => line.trim())
        .join(' '),
    ).toBe(long);
    expect(toYaml({ k: 'one\ntwo' })).toBe('k: |-\n  one\n  two\n');
  });

  test('does not fold a text that folding would change', () => {
    const doubled = `${'x'.repeat(60)}  ${'y'.repeat(60)}`;
    expect(toYaml({ k: doubled })).toBe(`k: '${doubled}'\n`);
  });
});
