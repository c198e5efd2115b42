import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { fuzzing, mutatedJson, mutatedText } from '../../encoding/testing/mutations.ts';
import { isAppError } from '../../errors/errors.ts';
import { answerClaims } from './claims.ts';
import { type DcqlQuery, parseDcqlQuery } from './dcql.ts';
import { parseVpToken } from './submission.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const runs = fuzzing(process.env);

const query = {
  credentials: [
    {
      id: 'pid',
      format: 'dc+sd-jwt',
      meta: { vct_values: ['urn:eudi:pid:1', 'urn:eudi:pid:2'] },
      multiple: true,
      claims: [
        { id: 'name', path: ['given_name'] },
        { id: 'town', path: ['address', 'town'], values: ['Berlin', 'Paris'] },
        { id: 'degree', path: ['degrees', null, 'type'], values: ['Master'] },
        { id: 'first', path: ['nationalities', 0], values: ['DE', 7, true] },
      ],
      claim_sets: [['name', 'town', 'degree'], ['name', 'first'], ['name']],
      trusted_authorities: [{ type: 'aki', values: ['s9tIpPmhxdiuNkHMEWNpYim8S8Y'] }],
    },
    {
      id: 'mdl',
      format: 'mso_mdoc',
      meta: { doctype_value: 'org.iso.18013.5.1.mDL' },
      claims: [{ path: ['org.iso.18013.5.1', 'family_name'], intent_to_retain: false }],
    },
  ],
  credential_sets: [{ options: [['pid'], ['mdl']], required: true, purpose: 'identity' }],
};
const claims: JsonObject = {
  given_name: 'Ada',
  address: { town: 'Berlin' },
  degrees: [{ type: 'Bachelor' }, { type: 'Master' }],
  nationalities: ['DE', 'FR'],
  'org.iso.18013.5.1': { family_name: 'Lovelace' },
};
const parsed = parseDcqlQuery(query);

/** What comes of an act that may be refused with one of the codes. */
function attempt<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    expect(codes).toContain(error.code);
    return undefined;
  }
}

const queryOf = (value: unknown) => attempt(['DCQL_INVALID'], () => parseDcqlQuery(value));

function answersOf({ credentials }: DcqlQuery, from: JsonObject) {
  return credentials.map((each) => answerClaims(each, from));
}

/** A member named __proto__ is not known, and may be left out. */
const withoutPrototype = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (name, member: unknown) => (name === '__proto__' ? undefined : member));

it('a changed query is refused, or is the query that it was parsed from', () => {
  let accepted = 0;
  fc.assert(
    fc.property(mutatedJson(query), (value) => {
      const found = queryOf(value);
      if (found === undefined) return;
      accepted += 1;
      expect(withoutPrototype(found)).toEqual(withoutPrototype(value));
      for (const { violations } of answersOf(found, claims))
        for (const { code } of violations) expect(['CLAIM_MISSING', 'CLAIM_VALUE']).toContain(code);
    }),
    runs(1_000),
  );
  expect(accepted).toBeGreaterThan(10);
});

it('changed claims answer a query or not; a claim set that answers is wholly there', () => {
  expect(answersOf(parsed, claims).map(({ violations }) => violations)).toEqual([[], []]);
  const reached = new Set<number>();
  fc.assert(
    fc.property(mutatedJson(claims), (changed) => {
      const [{ requested, violations } = { requested: [], violations: [] }] = answersOf(
        parsed,
        changed as JsonObject,
      );
      if (violations.length > 0) return requested.length === 1;
      reached.add(requested.length);
      return requested[0]?.id === 'name' && Object.hasOwn(changed as JsonObject, 'given_name');
    }),
    runs(1_000),
  );
  expect([...reached].sort()).toEqual([1, 2, 3]);
});

it('a changed envelope is refused, or has presentations of the query as they were written', () => {
  const envelope = { pid: ['eyJh.e30.AA~', 'eyJh.e31.AA~'], mdl: ['o2d2ZXJzaW9u'] };
  const texts = fc.oneof(
    mutatedText(JSON.stringify(envelope)),
    mutatedJson(envelope).map((value) => JSON.stringify(value)),
  );
  let accepted = 0;
  fc.assert(
    fc.property(texts, (text) => {
      const codes = ['DCQL_INVALID', 'DCQL_UNKNOWN_QUERY_ID', 'LEGACY_DIALECT'];
      const found = attempt(codes, () => parseVpToken(parsed, text));
      if (found === undefined) return;
      accepted += 1;
      const written: Record<string, unknown> = JSON.parse(text);
      expect(Object.fromEntries(found.map((each) => [each.query.id, each.presentations]))).toEqual(written);
    }),
    runs(1_500),
  );
  expect(accepted).toBeGreaterThan(10);
});
