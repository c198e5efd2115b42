import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../encoding/jcs.ts';
import { changedPointers, classifyChange, MAX_POINTERS, nextVersion, versionText } from './changes.ts';
import { execDefHash, publishedForm, structuralHash } from './hashes.ts';
import { BLUEPRINT_MEMBERS, type BlueprintPart, jsonPointer, readDefinition } from './members.ts';

type Json = Record<string, unknown>;

const text = readFileSync(new URL('vectors/site-permit.json', import.meta.url), 'utf8');
const example = (): Json => JSON.parse(text);

/** An object of each part in the example. */
const places: Readonly<Record<BlueprintPart, (definition: Json) => Json>> = {
  blueprint: (definition) => definition,
  participant: (definition) => (definition['participants'] as Json[])[1] as Json,
  action: (definition) => (definition['actions'] as Json[])[1] as Json,
  route: (definition) => (places.action(definition)['routes'] as Json[])[0] as Json,
};
const members = Object.entries(BLUEPRINT_MEMBERS).flatMap(([part, kinds]) =>
  Object.entries(kinds).map(([name, kind]) => ({ part: part as BlueprintPart, name, kind })),
);

/** The value that a JSON Pointer refers to. */
function resolve(value: unknown, pointer: string): unknown {
  let found = value;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    found = Object.hasOwn(Object(found), name) ? (found as Json)[name] : undefined;
  }
  return found;
}

describe('members of a blueprint', () => {
  test.each(members)('$part.$name counts as $kind', ({ part, name, kind }) => {
    const changed = example();
    const place = places[part](changed);
    place[name] = typeof place[name] === 'string' ? `${place[name]}-other` : [{ 'x-changed': true }];
    const differs = (hash: (value: Json) => unknown) =>
      JSON.stringify(hash(changed)) !== JSON.stringify(hash(example()));
    expect({
      behaviour: differs(execDefHash),
      structure: differs(structuralHash),
      published: differs((value) => publishedForm(value)),
    }).toEqual({
      behaviour: kind === 'behaviour',
      structure: kind === 'behaviour' || kind === 'structure',
      published: kind !== 'server',
    });
  });

  test('the example has only members of the schema', () => {
    expect(readDefinition(example())).toMatchObject({ id: 'site-permit-approval' });
  });

  test.each<[string, string, (definition: Json) => unknown]>([
    ['no data', '', () => null],
    ['an unknown member', '/colour', (definition) => ({ ...definition, colour: 'red' })],
    ['a malformed id', '/id', (definition) => ({ ...definition, id: 'Site Permit' })],
    ['a short title', '/title', (definition) => ({ ...definition, title: 'ab' })],
    [
      'one participant',
      '/participants',
      (definition) => ({ ...definition, participants: [{ id: 'a', name: 'A' }] }),
    ],
    [
      'a participant twice',
      '/participants/1/id',
      (definition) => ({
        ...definition,
        participants: [
          { id: 'a', name: 'A' },
          { id: 'a', name: 'B' },
        ],
      }),
    ],
    ['no action', '/actions', (definition) => ({ ...definition, actions: [] })],
    [
      'an action without sender',
      '/actions/0/sender',
      (definition) => ({ ...definition, actions: [{ id: 0, title: 'Apply' }] }),
    ],
  ])('%s is refused at %s', (_what, location, change) => {
    expect(readDefinition(change(example()))).toContainEqual(expect.objectContaining({ location }));
  });

  test.each(['dataSchemas', 'participants'])('a member named __proto__ in %s stays where it is', (list) => {
    const sent: unknown = JSON.parse(
      text.replace(`"${list}": [`, `"${list}": [{ "__proto__": "a", "id": "b", "name": "c" },`),
    );
    const read = readDefinition(sent);
    expect('id' in read && canonicalJson(read)).toBe(canonicalJson(sent));
    expect(canonicalJson(read)).toContain('__proto__');
  });

  test('a member named __proto__ of the blueprint itself is refused as unknown', () => {
    const sent: unknown = JSON.parse(text.replace('{', '{ "__proto__": 1,'));
    expect(readDefinition(sent)).toContainEqual(expect.objectContaining({ location: '/__proto__' }));
  });

  test('an extension is accepted', () => {
    expect(readDefinition({ ...example(), 'x-team': 1 })).toMatchObject({ 'x-team': 1 });
  });
});

describe('changes between two definitions', () => {
  const json = fc.jsonValue({ maxDepth: 4 });

  test('equal values have none, and pointers name what differs', () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        expect(changedPointers(before, structuredClone(before))).toEqual([]);
        const pointers = changedPointers(before, after, Number.POSITIVE_INFINITY);
        const same = JSON.stringify(before) === JSON.stringify(after);
        if (same) expect(pointers).toEqual([]);
        expect(new Set(pointers).size).toBe(pointers.length);
        for (const pointer of pointers) {
          expect(JSON.stringify(resolve(before, pointer))).not.toBe(JSON.stringify(resolve(after, pointer)));
        }
      }),
    );
  });

  test('a change of one member has its pointer', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), fc.string(), (value, name) => {
        const changed = { ...value, [name]: { changed: [JSON.stringify(value)] } };
        expect(changedPointers(value, changed).length).toBeGreaterThan(0);
        for (const pointer of changedPointers(value, changed)) {
          expect(pointer.startsWith(jsonPointer([name]))).toBe(true);
        }
      }),
    );
  });

  test('at most a hundred are listed', () => {
    const many = Array.from({ length: 1_000 }, (_, index) => index);
    expect(changedPointers(many, [])).toHaveLength(MAX_POINTERS);
  });

  test('a change of text is documentation; any other change lists its pointers', () => {
    const words = { ...example(), title: 'Another title' };
    expect(classifyChange(example(), words)).toMatchObject({
      changeType: 'documentation',
      structuralFieldsChanged: [],
    });
    const structure = example();
    places.action(structure)['sender'] = 'applicant';
    const found = classifyChange(example(), structure);
    expect(found).toMatchObject({
      changeType: 'structural',
      structuralFieldsChanged: ['/actions/1/sender'],
    });
    expect(found.structuralHashCurrent).not.toBe(found.structuralHashNew);
  });

  test('a structural change makes the next major version, a change of text the next minor one', () => {
    const first = nextVersion(undefined, 'documentation');
    const second = nextVersion(first, 'documentation');
    const third = nextVersion(second, 'structural');
    expect([first, second, third].map(versionText)).toEqual(['1.0', '1.1', '2.0']);
  });
});
