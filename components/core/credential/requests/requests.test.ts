import { DcqlPresentationResult, DcqlQuery as LibraryQuery } from 'dcql';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { isAppError } from '../../errors/errors.ts';
import { judgeClaims, selectClaims } from './claims.ts';
import { type DcqlQuery, parseDcqlQuery } from './dcql.ts';
import { buildRequirementQuery, type CredentialRequirement, judgeRequirement } from './requirement.ts';
import { isSatisfied, parseVpToken } from './submission.ts';

const pid = { id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] } };
const mdl = { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } };

/** The code of a refusal; `ok` when there is none. */
function codeOf(act: () => unknown): string {
  try {
    act();
    return 'ok';
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.code;
  }
}

it('a query is parsed and keeps members that are not known', () => {
  const query = {
    credentials: [
      { ...pid, claims: [{ id: 'a', path: ['given_name'] }], claim_sets: [['a']], future: 1 },
      { ...mdl, claims: [{ path: ['org.iso.18013.5.1', 'family_name'], intent_to_retain: true }] },
    ],
    credential_sets: [{ options: [['pid'], ['mdl']], purpose: 'identity' }],
  };
  expect(parseDcqlQuery(query)).toEqual(query);
});

it('a query that is not valid', () => {
  const claims = [{ id: 'a', path: ['given_name'] }];
  const broken: Record<string, unknown> = {
    'no object': 1,
    'no queries': { credentials: [] },
    'no meta': { credentials: [{ id: 'pid', format: 'dc+sd-jwt' }] },
    'no types': { credentials: [{ ...pid, meta: { vct_values: [] } }] },
    'meta of the other format': { credentials: [{ ...pid, meta: mdl.meta }] },
    'unknown format': { credentials: [{ ...pid, format: 'jwt_vc_json' }] },
    'id with a dot': { credentials: [{ ...pid, id: 'a.b' }] },
    'empty id': { credentials: [{ ...pid, id: '' }] },
    'same id': { credentials: [pid, pid] },
    'no proof of the key': { credentials: [{ ...pid, require_cryptographic_holder_binding: false }] },
    'no claims': { credentials: [{ ...pid, claims: [] }] },
    'empty path': { credentials: [{ ...pid, claims: [{ path: [] }] }] },
    'negative step': { credentials: [{ ...pid, claims: [{ path: [-1] }] }] },
    'value is an object': { credentials: [{ ...pid, claims: [{ path: ['a'], values: [{}] }] }] },
    'same claim id': { credentials: [{ ...pid, claims: [...claims, { id: 'a', path: ['b'] }] }] },
    'same path': { credentials: [{ ...pid, claims: [...claims, { id: 'b', path: ['given_name'] }] }] },
    'set of unknown claims': { credentials: [{ ...pid, claims, claim_sets: [['b']] }] },
    'set without ids': { credentials: [{ ...pid, claims: [{ path: ['a'] }], claim_sets: [['a']] }] },
    'sets without claims': { credentials: [{ ...pid, claim_sets: [['a']] }] },
    'mdoc path of one step': { credentials: [{ ...mdl, claims: [{ path: ['family_name'] }] }] },
    'mdoc path with an index': { credentials: [{ ...mdl, claims: [{ path: ['a', 0] }] }] },
    'option of unknown queries': { credentials: [pid], credential_sets: [{ options: [['mdl']] }] },
    'empty option': { credentials: [pid], credential_sets: [{ options: [[]] }] },
    'no options': { credentials: [pid], credential_sets: [{ options: [] }] },
    'no sets': { credentials: [pid], credential_sets: [] },
    'too many': { credentials: Array.from({ length: 17 }, (_, index) => ({ ...pid, id: `q${index}` })) },
  };
  for (const [what, query] of Object.entries(broken)) {
    expect([what, codeOf(() => parseDcqlQuery(query))]).toEqual([what, 'DCQL_INVALID']);
  }
});

it('nothing but a refusal comes of any query', () => {
  const odd = fc.json().map((text) => JSON.parse(text));
  const queries = fc.record(
    {
      id: fc.constantFrom('a', 'b'),
      format: fc.constantFrom('dc+sd-jwt', 'mso_mdoc'),
      meta: odd,
      claims: odd,
    },
    { requiredKeys: [] },
  );
  const whole = fc.record({ credentials: fc.array(queries), credential_sets: odd }, { requiredKeys: [] });
  fc.assert(
    fc.property(fc.oneof(odd, whole), (query) =>
      ['ok', 'DCQL_INVALID'].includes(codeOf(() => parseDcqlQuery(query))),
    ),
  );
});

const requirements: readonly CredentialRequirement[] = [
  {
    type: 'https://issuer.example/vct/permit',
    anyOfGroup: 'proof',
    requiredClaims: [{ claimName: 'a.b', expectedValue: 'x' }, { claimName: '/address/country' }],
    optionalClaims: [{ claimName: 'note' }],
    description: 'A permit or a licence',
  },
  {
    type: 'org.iso.18013.5.1.mDL',
    format: 'mso_mdoc',
    anyOfGroup: 'proof',
    requiredClaims: [{ claimName: 'org.iso.18013.5.1/family_name' }, { claimName: 'org.iso.18013.5.1/age' }],
  },
  {
    type: 'https://issuer.example/vct/permit',
    requiredClaims: [{ claimName: 'limits', expectedValue: { b: 1, a: [2] } }],
  },
];

it('requirements as a query', () => {
  const { query, requirements: byId } = buildRequirementQuery(
    requirements,
    new Set(['org.iso.18013.5.1/age']),
  );
  const id = 'https---issuer-example-vct-permit';
  expect(query).toEqual({
    credentials: [
      {
        id,
        format: 'dc+sd-jwt',
        meta: { vct_values: ['https://issuer.example/vct/permit'] },
        claims: [
          { id: 'c0', path: ['a.b'], values: ['x'] },
          { id: 'c1', path: ['address', 'country'] },
          { id: 'c2', path: ['note'] },
        ],
        claim_sets: [
          ['c0', 'c1', 'c2'],
          ['c0', 'c1'],
        ],
      },
      {
        id: 'org-iso-18013-5-1-mDL',
        format: 'mso_mdoc',
        meta: { doctype_value: 'org.iso.18013.5.1.mDL' },
        claims: [
          { path: ['org.iso.18013.5.1', 'family_name'], intent_to_retain: false },
          { path: ['org.iso.18013.5.1', 'age'], intent_to_retain: true },
        ],
      },
      {
        id: `${id}-2`,
        format: 'dc+sd-jwt',
        meta: { vct_values: ['https://issuer.example/vct/permit'] },
        claims: [{ path: ['limits'] }],
      },
    ],
    credential_sets: [
      { options: [[id], ['org-iso-18013-5-1-mDL']], required: true, purpose: 'A permit or a licence' },
      { options: [[`${id}-2`]], required: true },
    ],
  });
  expect([...byId.values()]).toEqual(requirements);
});

it('requirements without groups have no sets; odd ones are refused', () => {
  expect(buildRequirementQuery([{ type: '///' }]).query).toEqual({
    credentials: [{ id: 'credential', format: 'dc+sd-jwt', meta: { vct_values: ['///'] } }],
  });
  const claim = (claimName: string): CredentialRequirement => ({
    type: 'd',
    format: 'mso_mdoc',
    requiredClaims: [{ claimName }],
  });
  for (const name of ['family_name', '/a', 'a/']) {
    expect(codeOf(() => buildRequirementQuery([claim(name)]))).toBe('DCQL_INVALID');
  }
  expect(codeOf(() => buildRequirementQuery([]))).toBe('DCQL_INVALID');
});

it('claims of a requirement', () => {
  const [permit = requirements[0], , limits = requirements[2]] = requirements;
  if (permit === undefined || limits === undefined) throw new Error('no requirement');
  const codes = (requirement: CredentialRequirement, claims: JsonObject) =>
    judgeRequirement(requirement, claims).map(({ code, field }) => `${code} ${field}`);
  expect(codes(permit, { 'a.b': 'x', address: { country: 'DE' } })).toEqual([]);
  expect(codes(permit, { 'a.b': 'y', a: { b: 'x' } })).toEqual([
    'CLAIM_VALUE /a.b',
    'CLAIM_MISSING /address/country',
  ]);
  expect(codes(limits, { limits: { a: [2], b: 1 } })).toEqual([]);
  expect(codes(limits, { limits: { a: [2], b: '1' } })).toEqual(['CLAIM_VALUE /limits']);
  const optional: CredentialRequirement = {
    type: 't',
    optionalClaims: [{ claimName: 'a', expectedValue: 1 }],
  };
  expect(codes(optional, {})).toEqual([]);
  expect(codes(optional, { a: 2 })).toEqual(['CLAIM_VALUE /a']);
});

it('paths into claims (OpenID4VP 1.0 section 7.4)', () => {
  const claims = {
    name: 'Arthur Dent',
    address: { street_address: '42 Market Street', locality: 'Milliways' },
    degrees: [{ type: 'Bachelor' }, { type: 'Master' }, {}],
    nationalities: ['British', 'Betelgeusian'],
  };
  expect(selectClaims(claims, ['name'])).toEqual(['Arthur Dent']);
  expect(selectClaims(claims, ['address', 'street_address'])).toEqual(['42 Market Street']);
  expect(selectClaims(claims, ['degrees', null, 'type'])).toEqual(['Bachelor', 'Master']);
  expect(selectClaims(claims, ['nationalities', 1])).toEqual(['Betelgeusian']);
  expect(selectClaims({ list: [] }, ['list', null])).toEqual([]);
  const [first] = parseDcqlQuery({
    credentials: [{ ...pid, claims: [{ path: ['nationalities', 0], values: ['Betelgeusian'] }] }],
  }).credentials;
  if (first === undefined) throw new Error('no query');
  expect(judgeClaims(first, claims).map(({ code }) => code)).toEqual(['CLAIM_VALUE']);
  for (const path of [
    ['toString'],
    ['__proto__'],
    ['name', 'length'],
    ['name', 0],
    ['nationalities', '0'],
    ['degrees', 3],
    ['degrees', 2, 'type'],
  ]) {
    expect(selectClaims(claims, path)).toEqual([]);
  }
});

/** Claims that count how often their long list is read. */
function countedClaims(list: readonly unknown[]) {
  const counted = { reads: 0 };
  const claims = Object.defineProperty({}, 'list', {
    enumerable: true,
    get: () => {
      counted.reads += 1;
      return list;
    },
  });
  return { claims, counted };
}

it('long arrays in claims are judged in one pass', () => {
  // more elements than a call has room for arguments
  const list = Array.from({ length: 300_000 }, (_, index) => (index % 2 === 0 ? `v${index}` : { v: index }));
  expect(selectClaims({ list: [list, list] }, ['list', null, null])).toHaveLength(600_000);
  const values = Array.from({ length: 64 }, (_, index) => `x${index}`);
  const sets = Array.from({ length: 16 }, () => ['all']);
  const judge = (accepted: readonly unknown[]) => {
    const claim = { id: 'all', path: ['list', null], values: accepted };
    const [query] = parseDcqlQuery({
      credentials: [{ ...pid, claims: [claim], claim_sets: sets }],
    }).credentials;
    if (query === undefined) throw new Error('no query');
    const { claims, counted } = countedClaims(list);
    const codes = judgeClaims(query, claims).map(({ code }) => code);
    // `stepInto` looks the member up and reads it once for each claim, not once for each set that names it.
    expect(counted.reads).toBe(1);
    return codes;
  };
  expect(judge(values)).toEqual(['CLAIM_VALUE']);
  expect(judge([...values.slice(1), 'v299998'])).toEqual([]);
});

it('a value of a claim is a text, a whole number or a boolean', () => {
  const judge = (value: unknown, accepted: unknown) => {
    const claims = [{ path: ['a'], values: [accepted] }];
    const [query] = parseDcqlQuery({ credentials: [{ ...pid, claims }] }).credentials;
    if (query === undefined) throw new Error('no query');
    return judgeClaims(query, { a: value }).map(({ code }) => code);
  };
  for (const value of ['1', 1, true, '']) expect(judge(value, value)).toEqual([]);
  for (const value of ['1', true, null, [1], { a: 1 }, 1.5]) expect(judge(value, 1)).toEqual(['CLAIM_VALUE']);
});

it('an envelope', () => {
  const query = parseDcqlQuery({ credentials: [pid, { ...mdl, multiple: true }] });
  const read = (value: unknown) =>
    parseVpToken(query, typeof value === 'string' ? value : JSON.stringify(value));
  expect(
    read({ mdl: ['a', 'b'], pid: ['c'] }).map(({ query: { id }, presentations }) => [id, presentations]),
  ).toEqual([
    ['pid', ['c']],
    ['mdl', ['a', 'b']],
  ]);
  const refused: readonly (readonly [string, unknown])[] = [
    ['LEGACY_DIALECT', 'eyJhbGciOiJFUzI1NiJ9.e30.AA~'],
    ['LEGACY_DIALECT', '"eyJhbGciOiJFUzI1NiJ9.e30.AA~"'],
    ['LEGACY_DIALECT', ['eyJhbGciOiJFUzI1NiJ9.e30.AA~']],
    ['LEGACY_DIALECT', ''],
    ['DCQL_INVALID', 'null'],
    ['DCQL_INVALID', '{"pid":["a"]'],
    ['DCQL_INVALID', '{"pid":["a"],"pid":["b"]}'],
    ['DCQL_INVALID', {}],
    ['DCQL_INVALID', { pid: 'a' }],
    ['DCQL_INVALID', { pid: [] }],
    ['DCQL_INVALID', { pid: [''] }],
    ['DCQL_INVALID', { pid: [{}] }],
    ['DCQL_INVALID', { pid: ['a', 'b'] }],
    ['DCQL_INVALID', { mdl: Array.from({ length: 17 }, () => 'a') }],
    ['DCQL_UNKNOWN_QUERY_ID', { pid: ['a'], other: ['b'] }],
    ['DCQL_UNKNOWN_QUERY_ID', { __proto__x: ['b'] }],
    ['DCQL_UNKNOWN_QUERY_ID', '{"__proto__":["a"]}'],
  ];
  for (const [code, value] of refused) expect([value, codeOf(() => read(value))]).toEqual([value, code]);
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) =>
      ['LEGACY_DIALECT', 'DCQL_INVALID', 'DCQL_UNKNOWN_QUERY_ID'].includes(
        codeOf(() => parseVpToken(query, text)),
      ),
    ),
  );
});

it('which queries must be verified', () => {
  const satisfied = (query: object, ...verified: readonly string[]) =>
    isSatisfied(parseDcqlQuery({ credentials: [pid, mdl], ...query }), new Set(verified));
  expect([satisfied({}, 'pid', 'mdl'), satisfied({}, 'pid'), satisfied({})]).toEqual([true, false, false]);
  const either = { credential_sets: [{ options: [['pid'], ['mdl']] }] };
  expect([satisfied(either, 'mdl'), satisfied(either, 'pid'), satisfied(either)]).toEqual([
    true,
    true,
    false,
  ]);
  const both = { credential_sets: [{ options: [['pid', 'mdl']] }] };
  expect([satisfied(both, 'pid', 'mdl'), satisfied(both, 'pid')]).toEqual([true, false]);
  const optional = {
    credential_sets: [
      { options: [['pid']], required: true },
      { options: [['mdl']], required: false },
    ],
  };
  expect([satisfied(optional, 'pid'), satisfied(optional, 'mdl')]).toEqual([true, false]);
  const allOptional = { credential_sets: [{ options: [['pid']], required: false }] };
  expect([satisfied(allOptional), satisfied(allOptional, 'mdl')]).toEqual([false, true]);
});

/** What the library says of one presentation. It throws a TypeError for a path into an array that is too short. */
function libraryAccepts(query: DcqlQuery, claims: JsonObject): boolean {
  const dcqlQuery = LibraryQuery.parse(JSON.parse(JSON.stringify(query)));
  const presentation = {
    credential_format: 'dc+sd-jwt',
    vct: 'urn:eudi:pid:1',
    claims: JSON.parse(JSON.stringify(claims)),
    cryptographic_holder_binding: true,
  } as const;
  try {
    const result = DcqlPresentationResult.fromDcqlPresentation({ pid: [presentation] }, { dcqlQuery });
    return result.can_be_satisfied;
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

it('claims are judged as the library judges them', () => {
  const leaf = fc.constantFrom('x', 'y', 1, true);
  const value = fc.oneof(
    leaf,
    // The library takes an empty array for a claim that null selects; section 7.1 does not.
    fc.array(leaf, { minLength: 1, maxLength: 2 }),
    fc.dictionary(fc.constantFrom('p', 'q'), leaf, { noNullPrototype: true }),
  );
  const claimSets = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { noNullPrototype: true });
  const values = fc.array(leaf, { minLength: 1, maxLength: 2 });
  // For a path with an index the library compares values with every element of the array, so that is left out.
  const claim = (id: string) =>
    fc.oneof(
      fc.record({ id: fc.constant(id), path: fc.constantFrom([id], [id, 'p'], [id, null]), values }),
      fc.record({ id: fc.constant(id), path: fc.constantFrom([id], [id, 'p'], [id, null], [id, 0]) }),
    );
  const queries = fc
    .record({
      claims: fc.tuple(claim('a'), claim('b')),
      claim_sets: fc.constantFrom([['a', 'b'], ['a']], [['b'], ['a']], undefined),
    })
    .map(({ claims, claim_sets }) => ({
      credentials: [{ ...pid, claims, ...(claim_sets === undefined ? {} : { claim_sets }) }],
    }));
  let accepted = 0;
  fc.assert(
    fc.property(queries, claimSets, (made, claims) => {
      const query = parseDcqlQuery(made);
      const [first] = query.credentials;
      if (first === undefined) return;
      const ours = judgeClaims(first, claims).length === 0;
      accepted += Number(ours);
      expect([JSON.stringify([made, claims]), ours]).toEqual([
        JSON.stringify([made, claims]),
        libraryAccepts(query, claims),
      ]);
    }),
    { numRuns: 1000, seed: 7 },
  );
  expect(accepted).toBeGreaterThan(50);
});
