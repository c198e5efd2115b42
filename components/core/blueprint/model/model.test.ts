import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BLUEPRINT_MEMBERS, jsonPointer, MAX_BLUEPRINT_BYTES } from '../members.ts';
import { actionModel, type Blueprint, blueprintModel, participantModel, routeModel } from './blueprint.ts';
import { parseBlueprint } from './parse.ts';

const text = readFileSync(new URL('../vectors/site-permit.json', import.meta.url), 'utf8');
const example = () => JSON.parse(text);

type Spoil = (definition: ReturnType<typeof example>) => void;

function findingsAfter(spoil: Spoil): string[] {
  const definition = example();
  spoil(definition);
  const parsed = parseBlueprint(definition);
  return 'findings' in parsed ? parsed.findings.map(({ code, location }) => `${code} ${location}`) : [];
}

function parsed(value: unknown): Blueprint {
  const result = parseBlueprint(value);
  if ('findings' in result) throw new Error(JSON.stringify(result.findings));
  return result.blueprint;
}

describe('the members of the model', () => {
  // A member that is not classified would be in no hash, or in the wrong one.
  test.each([
    ['blueprint', blueprintModel],
    ['participant', participantModel],
    ['action', actionModel],
    ['route', routeModel],
  ] as const)('of a %s are those that the hashes classify', (part, model) => {
    expect(Object.keys(model.shape).sort()).toEqual(Object.keys(BLUEPRINT_MEMBERS[part]).sort());
  });
});

describe('parseBlueprint', () => {
  test('returns the value itself, with its extensions', () => {
    const definition = example();
    definition['x-own'] = { any: ['thing'] };
    definition.actions[0].routes[0]['x-own'] = 1;
    definition.participants[0]['x-own'] = null;
    expect(parsed(definition)).toBe(definition);
  });

  const spoilt: Readonly<Record<string, readonly [string, Spoil]>> = {
    'no title': ['VAL_BP_001 /title', (it) => delete it.title],
    'a short description': ['VAL_BP_001 /description', (it) => (it.description = 'abc')],
    'one participant': ['VAL_BP_002 /participants', (it) => it.participants.splice(1)],
    'no actions': ['VAL_BP_003 /actions', (it) => (it.actions = [])],
    'actions that are no list': ['VAL_BP_003 /actions', (it) => (it.actions = {})],
    'an unknown member': ['VAL_BP_UNKNOWN_FIELD /owner', (it) => (it.owner = 'me')],
    'an unknown member of a route': [
      'VAL_BP_UNKNOWN_FIELD /actions/1/routes/0/a~1b',
      (it) => (it.actions[1].routes[0]['a/b'] = 1),
    ],
    'an unknown member of a trust source': [
      'VAL_BP_UNKNOWN_FIELD /actions/0/credentialRequirements/0/trustPolicy/sources/0/kid',
      (it) => (it.actions[0].credentialRequirements[0].trustPolicy.sources[0].kid = 1),
    ],
    'a calculation named __proto__': [
      'VAL_BP_UNKNOWN_FIELD /actions/0/calculations/__proto__',
      (it) => (it.actions[0].calculations = JSON.parse('{"__proto__": 1}')),
    ],
    'a calculation with a space': [
      'VAL_BP_FIELD /actions/0/calculations/a b',
      (it) => (it.actions[0].calculations['a b'] = 1),
    ],
    'an id in capitals': ['VAL_BP_FIELD /id', (it) => (it.id = 'Site')],
    'an id of an action that is a text': ['VAL_BP_FIELD /actions/0/id', (it) => (it.actions[0].id = '0')],
    'no disclosures': ['VAL_BP_FIELD /actions/0/disclosures', (it) => (it.actions[0].disclosures = [])],
    'a deadline in months': [
      'VAL_BP_FIELD /actions/0/routes/0/branchDeadline',
      (it) => (it.actions[0].routes[0].branchDeadline = 'P1M'),
    ],
    'a null': [
      'VAL_BP_FIELD /participants/0/walletAddress',
      (it) => (it.participants[0].walletAddress = null),
    ],
    'a schema that is a text': [
      'VAL_BP_FIELD /actions/0/dataSchemas/0',
      (it) => (it.actions[0].dataSchemas = ['{}']),
    ],
    'a control inside a control': [
      'VAL_BP_FIELD /actions/0/form/elements/0/type',
      (it) => (it.actions[0].form = { type: 'Layout', elements: [{ type: 'Script' }] }),
    ],
    'a lone surrogate': ['VAL_BP_JSON ', (it) => (it.title = 'abc\ud800')],
    'a definition of more than 512 KiB': [
      'VAL_BP_SIZE ',
      (it) => (it['x-own'] = 'a'.repeat(MAX_BLUEPRINT_BYTES)),
    ],
    'nesting of 65': [
      'VAL_BP_JSON ',
      (it) => (it['x-own'] = JSON.parse(`${'['.repeat(65)}${']'.repeat(65)}`)),
    ],
  };
  test.each(Object.entries(spoilt))('%s', (_name, [finding, spoil]) => {
    expect(findingsAfter(spoil)).toEqual([finding]);
  });

  test.each(['PT72H', 'P2W', 'P1DT1S', 'P1D'])('takes the deadline %s', (branchDeadline) => {
    expect(findingsAfter((it) => (it.actions[0].routes[0].branchDeadline = branchDeadline))).toEqual([]);
  });

  test.each(['P', 'PT', 'P1DT', 'P-1D', 'P1.5D', '1D', 'P1D1W'])(
    'refuses the deadline %s',
    (branchDeadline) => {
      expect(findingsAfter((it) => (it.actions[0].routes[0].branchDeadline = branchDeadline))).toHaveLength(
        1,
      );
    },
  );

  test('answers any JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect('findings' in parseBlueprint(value)).toBe(true);
      }),
    );
  });

  test('answers any JSON value at any place', () => {
    const places = [...placesOf(example(), [])];
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.jsonValue(), (path, value) => {
        const definition = example();
        const holder = path.slice(0, -1).reduce((at, name) => at[name], definition);
        holder[path.at(-1) ?? ''] = value;
        const result = parseBlueprint(definition);
        if (!('findings' in result)) return;
        const locations = result.findings.map(({ location }) => location);
        const place = jsonPointer(path);
        expect(locations.every((each) => each.startsWith(place) || place.startsWith(each))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

function* placesOf(value: unknown, path: readonly string[]): Generator<readonly string[]> {
  if (path.length > 0) yield path;
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) yield* placesOf(member, [...path, name]);
}
