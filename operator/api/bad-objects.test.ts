import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { API_GROUP_VERSION, type ManagedKind } from './names.ts';
import { parseRegister } from './register.ts';
import { parseTenant } from './tenant.ts';
import { goodSpecsOf } from './testing/arbitraries.ts';
import { badObjects, goodEdits, goodSpecs } from './testing/bad-objects.ts';
import { parseValidatorSet } from './validator-set.ts';

const parsers = { Register: parseRegister, Tenant: parseTenant, ValidatorSet: parseValidatorSet };
const kinds = ['Register', 'Tenant', 'ValidatorSet'] as const;

function parse(kind: ManagedKind, spec: object) {
  return parsers[kind]({ apiVersion: API_GROUP_VERSION, kind, metadata: { name: 'x' }, spec });
}

function refusalOf(kind: ManagedKind, spec: object): AppError {
  try {
    parse(kind, spec);
  } catch (error) {
    if (isAppError(error, 'invalid')) return error;
    throw error;
  }
  throw new Error(`${kind} was accepted`);
}

describe('the parser refuses what the API server refuses:', () => {
  test.each(badObjects)('$kind: $field ($message)', ({ kind, spec, field }) => {
    const fields = refusalOf(kind, spec).violations?.map((each) => each.field) ?? [];
    // an unknown member is reported on its parent, an entry of a map under its key
    const parent = field.slice(0, field.lastIndexOf('.'));
    expect(fields.some((found) => found === parent || found?.startsWith(field) === true)).toBe(true);
  });
});

test('parser and API server give the same message for a rule of this schema', () => {
  for (const { kind, spec, message } of badObjects) {
    if (!/^(?:write|use|raise|choose|needs|name)/.test(message)) continue;
    const messages = refusalOf(kind, spec)
      .violations?.map((each) => each.message)
      .join('; ');
    expect(messages, `${kind} ${message}`).toContain(message);
  }
});

test('the smallest spec of each kind and every good edit are accepted', () => {
  for (const kind of kinds) expect(parse(kind, goodSpecs[kind]).kind).toBe(kind);
  for (const { kind, before, edit } of goodEdits) expect(parse(kind, { ...before, ...edit }).kind).toBe(kind);
});

test.each(kinds)('every generated spec is accepted: %s', (kind) => {
  fc.assert(
    fc.property(goodSpecsOf[kind], (spec) => {
      expect(parse(kind, spec).kind).toBe(kind);
    }),
    { numRuns: 200 },
  );
});

test('parsing is idempotent', () => {
  for (const kind of kinds) {
    fc.assert(
      fc.property(goodSpecsOf[kind], (spec) => {
        const once = parse(kind, spec);
        expect(parse(kind, once.spec).spec).toEqual(once.spec);
      }),
      { numRuns: 100 },
    );
  }
});
