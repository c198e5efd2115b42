import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type MountedRoute, mountedRoutes } from './mounted.ts';
import type { Component } from './routes/table.ts';

const components: readonly Component[] = [
  'gateway',
  'tenant',
  'wallet',
  'register',
  'validator',
  'blueprint',
  'credential',
];
const mounted: readonly MountedRoute[] = (await Promise.all(components.map(mountedRoutes))).flat();

/** A member of a route's input, at any depth. */
interface Input {
  readonly name: string;
  readonly place: string;
  readonly schema: z.ZodType;
}

function inputsOf(part: 'body' | 'querystring' | 'params'): Input[] {
  return mounted.flatMap(({ component, method, path, schema }) => {
    const root = schema?.[part];
    return root instanceof z.ZodType ? membersOf(root, `${component} ${method} ${path}`) : [];
  });
}

/** Members of an object, and of objects inside unions, lists and wrappers. */
function membersOf(schema: z.ZodType, place: string): Input[] {
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([name, member]) => {
      const own = member as z.ZodType;
      return [{ name, place: `${place} ${name}`, schema: own }, ...membersOf(own, `${place} ${name}`)];
    });
  }
  return innerOf(schema).flatMap((inner) => membersOf(inner, place));
}

function innerOf(schema: z.ZodType): z.ZodType[] {
  if (schema instanceof z.ZodUnion) return schema.options as z.ZodType[];
  if (schema instanceof z.ZodArray) return [schema.element as z.ZodType];
  if (schema instanceof z.ZodPipe) return [schema.in, schema.out] as z.ZodType[];
  const isWrapper =
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault;
  return isWrapper ? [schema.unwrap() as z.ZodType] : [];
}

const accepts = ({ schema }: Input, value: unknown) => schema.safeParse(value).success;

describe('numbers in paths and queries', () => {
  const numbers = [...inputsOf('querystring'), ...inputsOf('params')].filter(({ schema }) =>
    ['integer', 'number'].includes(
      String(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }).type),
    ),
  );

  it('examines something', () => {
    expect(numbers.length).toBeGreaterThan(40);
    expect(numbers.filter((input) => accepts(input, '7')).length).toBe(numbers.length);
  });

  it.each(['0x10', '0b1', '1e1', '7\n', ' 7', '7 ', '+7', '-7', '7.0', '07', '٧', ''])(
    'none accepts %j',
    (text) => {
      expect(numbers.filter((input) => accepts(input, text)).map(({ place }) => place)).toEqual([]);
    },
  );
});

describe('texts that people read', () => {
  const readNames =
    /^(?:displayName|name|title|description|summary|reason|justification|comment|approvalNotes|companyTagline)$/;
  // A vote in a docket is signed and hashed as it is written.
  const isSealed = ({ place }: Input) => place.includes(' consensusVotes ');
  // These may repeat text that the ledger already has; they judge their other texts themselves.
  const repeats = [
    'register PUT /api/registers/:registerId ',
    'register PUT /api/internal/registers/:uid ',
    'register POST /api/internal/registers ',
    'register POST /api/internal/registers/:key/changes ',
  ];
  const mayRepeat = ({ place, name }: Input) =>
    name !== 'justification' && repeats.some((route) => place.startsWith(route));
  const texts = inputsOf('body').filter(
    (input) => readNames.test(input.name) && !isSealed(input) && !mayRepeat(input) && takesText(input),
  );

  function takesText({ schema }: Pick<Input, 'schema'>): boolean {
    return schema.safeParse('Plain words of a person').success;
  }

  it('examines something', () => {
    expect(texts.length).toBeGreaterThan(20);
    for (const name of [
      'displayName',
      'name',
      'title',
      'description',
      'reason',
      'justification',
      'comment',
    ]) {
      expect(texts.map((text) => text.name)).toContain(name);
    }
  });

  it.each([
    '\u202e',
    '\u2066',
    '\u2069',
    '\u200e',
    '\u061c',
    '\u00ad',
    '\u200b',
    '\ufeff',
    '\u2028',
    '\u0000',
    '\u001b',
    '\u0085',
    '\r',
    '\ud800',
    '\u{e0041}',
  ])('none accepts %j', (character) => {
    const taking = texts.filter((input) => accepts(input, `Plain ${character} words`));
    expect(taking.map(({ place }) => place)).toEqual([]);
  });

  it('all accept the joiners that scripts and emoji need', () => {
    for (const text of ['می\u200cخواهم', 'Ours 👩\u200d👧']) {
      expect(texts.filter((input) => !accepts(input, text)).map(({ place }) => place)).toEqual([]);
    }
  });

  it('publish no pattern that only some languages support', () => {
    const patterns = texts.flatMap(({ schema, place }) => {
      const shown = JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
      return /\\\\[pP]\{/.test(shown) ? [place] : [];
    });
    expect(patterns).toEqual([]);
  });
});
