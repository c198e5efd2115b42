import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { LogicEngine } from 'json-logic-engine';
import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import type { Action, Blueprint } from '../model/blueprint.ts';
import { parseBlueprint } from '../model/parse.ts';
import { findPath, valueAt } from '../pointer.ts';
import { type ActionOutcome, evaluateAction } from './action.ts';
import type { LogicEvaluation } from './calculations.ts';
import { disclose, discloseBy } from './disclose.ts';
import { decisionNotice, reasonCodeOf } from './notice.ts';
import { mapOutputs, readsOffer } from './prefill.ts';
import { instanceReference } from './reference.ts';

function loadBlueprint(): Blueprint {
  const file = new URL('../vectors/site-permit.json', import.meta.url);
  const parsed = parseBlueprint(JSON.parse(readFileSync(file, 'utf8')) as unknown);
  if (!('blueprint' in parsed)) throw new Error(JSON.stringify(parsed));
  return parsed.blueprint;
}

const sitePermit = loadBlueprint();
const instanceId = '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b';

function actionOf(id: number): Action {
  const action = sitePermit.actions.find((each) => each.id === id);
  if (action === undefined) throw new Error(`no action ${id}`);
  return action;
}

/** An independent engine; names of variables are read from the JSON itself. */
const logic: LogicEvaluation = {
  evaluate: (rule, data): unknown => new LogicEngine().run(rule, data),
  variablesOf: (rule) => [...JSON.stringify(rule).matchAll(/"var":"([^"]*)"/g)].map(([, name = '']) => name),
};

const application = {
  siteReference: 'AB-1234',
  floorAreaM2: 620,
  estimatedCostMinor: 1_000_000,
  hazardous: false,
  contact: { email: 'a@example.org' },
};

function evaluate(
  action: Pick<Action, 'id' | 'calculations' | 'routes'>,
  submission: JsonObject,
  more: object = {},
) {
  const state = { actions: {}, merged: {} };
  return evaluateAction({ action, validate: () => [], logic, prefill: {}, submission, state, ...more });
}

function evaluated(outcome: ActionOutcome) {
  if (!('processed' in outcome)) throw new Error('the payload has errors');
  return outcome;
}

describe('the evaluation of an action', () => {
  it.each([
    [620, false, { feeMinor: 15_500, riskTier: 'high' }, { id: 'risky', nextActionIds: [1] }],
    [40, false, { feeMinor: 5_000, riskTier: 'normal' }, { id: 'plain', nextActionIds: [2] }],
    [40, true, { feeMinor: 21_000, riskTier: 'high' }, { id: 'risky', nextActionIds: [1] }],
  ])('site permit of %i square metres, hazardous: %s', (floorAreaM2, hazardous, expected, route) => {
    const { calculations, taken } = evaluated(
      evaluate(actionOf(0), { ...application, floorAreaM2, hazardous }),
    );
    expect(calculations).toEqual(expected);
    expect(taken?.route).toMatchObject(route);
    expect(taken?.matchedCondition).toBe(route.id === 'plain' ? null : '{"==":[{"var":"riskTier"},"high"]}');
  });

  it('lays the submission over the prefill, member by member', () => {
    const prefill = { offer: { uri: 'x' }, collected: false };
    const { payload } = evaluate(actionOf(3), { collected: true }, { prefill });
    expect(payload).toEqual({ offer: { uri: 'x' }, collected: true });
  });

  it('answers the errors of a payload, and evaluates no logic then', () => {
    const errors = [{ path: '/a', message: 'm', schemaLocation: '/properties/a', keyword: 'type' }];
    const never = { variablesOf: () => [], evaluate: () => expect.unreachable() };
    const outcome = evaluate(actionOf(0), application, { validate: () => errors, logic: never });
    expect(outcome).toEqual({ payload: application, errors });
  });

  it('sees earlier data below the payload, and earlier actions by their ids', () => {
    const calculations = { sum: { '+': [{ var: 'a' }, { var: 'b' }, { var: 'actions.0.a' }] } };
    const state = { actions: { '0': { a: 100 } }, merged: { a: 100, b: 10 } };
    const submission = { a: 1, actions: { '0': { a: 5_000 } } };
    const outcome = evaluated(evaluate({ id: 1, calculations }, submission, { state }));
    expect(outcome.calculations).toEqual({ sum: 111 });
    expect(outcome.processed).toEqual({ ...submission, sum: 111 });
    expect(outcome.taken).toBeUndefined();
  });

  it('evaluates calculations in the order of their dependencies, whatever that of the members', () => {
    const rules: [string, unknown][] = [
      ['c', { '+': [{ var: 'b' }, 1] }],
      ['a', 1],
      ['b', { '+': [{ var: 'a' }, 1] }],
    ];
    fc.assert(
      fc.property(fc.shuffledSubarray(rules, { minLength: 3 }), (shuffled) => {
        const calculations = Object.fromEntries(shuffled);
        expect(evaluated(evaluate({ id: 0, calculations }, {})).calculations).toEqual({ a: 1, b: 2, c: 3 });
      }),
    );
  });

  it.each([
    ['CALC_CYCLE', { calculations: { a: { var: 'b' }, b: { var: 'a.x' } } }],
    ['CALC_CYCLE', { calculations: { a: { '+': [{ var: 'a' }, 1] } } }],
    ['NO_ROUTE', { routes: [{ id: 'r', nextActionIds: [], condition: { '==': [1, 2] } }] }],
    ['NO_ROUTE', { routes: [{ id: 'r', nextActionIds: [], condition: [] }] }],
  ])('refuses with %s', (code, members) => {
    expect(() => evaluate({ id: 0, ...members }, {})).toThrow(
      expect.objectContaining({ kind: 'unprocessable', code }),
    );
  });
});

it.each([[Number.POSITIVE_INFINITY], [[1, Number.NaN]], [{ a: 1n }]])(
  'refuses the result %s of a calculation',
  (result) => {
    const odd = { ...logic, evaluate: () => result };
    expect(() => evaluate({ id: 0, calculations: { a: 1 } }, {}, { logic: odd })).toThrow(
      expect.objectContaining({ code: 'CALC_NOT_FINITE' }),
    );
  },
);

describe('disclosure', () => {
  it('gives the parties of the site permit 7, 7 and 4 fields', () => {
    const { processed } = evaluated(evaluate(actionOf(0), application));
    const shown = disclose(actionOf(0), processed);
    expect(shown.map(({ participantId, fieldCount }) => [participantId, fieldCount])).toEqual([
      ['applicant', 7],
      ['planning-office', 7],
      ['safety-board', 4],
    ]);
    expect(shown[2]?.data).toEqual({
      siteReference: 'AB-1234',
      floorAreaM2: 620,
      hazardous: false,
      riskTier: 'high',
    });
    expect(shown[2]?.pointers).toEqual(['/siteReference', '/floorAreaM2', '/hazardous', '/riskTier']);
  });

  it('keeps structure, unites what is listed twice, and passes through no array', () => {
    const data = {
      contact: { email: 'e', phone: 'p', fax: 'f' },
      list: [{ a: 1 }],
      'a/b': 1,
      '~1': 2,
      n: null,
    };
    const by = (...pointers: string[]) => discloseBy(pointers, data).data;
    expect(by('/contact/email', '#/contact/phone')).toEqual({ contact: { email: 'e', phone: 'p' } });
    expect(by('/contact', '/contact/email')).toEqual({ contact: data.contact });
    expect(by('/list/0/a', '/list/0', '/contact/email/x', '/none')).toEqual({});
    expect(by('/list')).toEqual({ list: data.list });
    expect(by('/a~1b', '/~01')).toEqual({ 'a/b': 1, '~1': 2 });
    expect(by('#/a~1b', '#/%6E')).toEqual({ 'a/b': 1, n: null });
    for (const broken of ['', '#', 'contact', '/contact~2', '#/%', '/__proto__', '/contact/constructor']) {
      expect(by(broken)).toEqual({});
    }
    expect(discloseBy(['/none', '/list'], data).pointers).toEqual(['/list']);
  });

  it('unites several disclosures to one participant, and leaves out participants that read nothing', () => {
    const disclosures = [
      { participantAddress: 'b', dataPointers: ['/x'] },
      { participantAddress: 'b', dataPointers: ['/y'] },
      { participantAddress: 'c', dataPointers: ['/z'] },
      { participantAddress: 'd', dataPointers: ['/*'] },
    ];
    const shown = disclose({ sender: 'a', disclosures }, { x: 1, y: 2 });
    expect(shown.map(({ participantId, data }) => [participantId, data])).toEqual([
      ['a', { x: 1, y: 2 }],
      ['b', { x: 1, y: 2 }],
      ['d', { x: 1, y: 2 }],
    ]);
    expect(disclose({ sender: 'a', disclosures }, {})).toEqual([
      { participantId: 'a', data: {}, fieldCount: 0, pointers: ['/*'] },
    ]);
  });

  it('never shows a value that no listed pointer leads to', () => {
    const name = fc.constantFrom('a', 'b', '', '~', '/', '~1', '*', '__proto__', 'constructor', '0');
    const data = fc
      .letrec<{ value: unknown }>((tie) => ({
        value: fc.oneof(
          { maxDepth: 4 },
          fc.constantFrom(1, 'x', null, true),
          fc.array(tie('value'), { maxLength: 2 }),
          fc
            .uniqueArray(fc.tuple(name, tie('value')), { selector: ([key]) => key, maxLength: 4 })
            .map(Object.fromEntries),
        ),
      }))
      .value.filter(isJsonObject);
    const escaped = (each: string) => each.replaceAll('~', '~0').replaceAll('/', '~1');
    const pointer = fc
      .array(name, { minLength: 1, maxLength: 4 })
      .map((path) => `/${path.map(escaped).join('/')}`);
    fc.assert(
      fc.property(
        data,
        fc.array(
          pointer.filter((each) => each !== '/*'),
          { maxLength: 5 },
        ),
        (document, pointers) => {
          const shown = discloseBy(pointers, document);
          for (const path of leavesOf(shown.data)) {
            const covered = shown.pointers.map((each) => findPath(each) ?? ['no path']);
            expect(covered.some((prefix) => prefix.every((each, index) => each === path[index]))).toBe(true);
            const at = `/${path.map(escaped).join('/')}`;
            expect(valueAt(shown.data, at)).toEqual(valueAt(document, at));
          }
          for (const each of shown.pointers) {
            expect(pointers).toContain(each);
            expect(valueAt(shown.data, each)).toEqual(valueAt(document, each));
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

function leavesOf(data: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (!isJsonObject(data) || Object.keys(data).length === 0) return path.length === 0 ? [] : [path];
  return Object.entries(data).flatMap(([name, value]) => leavesOf(value, [...path, name]));
}

describe('what follows from an action', () => {
  it('maps outputs to the next action in an order of its own', () => {
    const approved = actionOf(2).routes?.[0] ?? { outputMapping: {} };
    const source = { payload: { a: 1, b: { c: 2 } }, calculations: { fee: 3 } };
    expect(mapOutputs(approved, source)).toEqual({});
    expect(readsOffer(approved)).toBe(true);
    expect(mapOutputs(approved, { ...source, haip: { credentialOfferUri: 'openid:x' } })).toEqual({
      offer: { credential_offer_uri: 'openid:x' },
    });
    const pairs = [
      ['/calculations/fee', '/out/fee'],
      ['/payload/b', '/out'],
      ['/payload/none', '/never'],
      ['/payload/a', '/__proto__/polluted'],
    ] as const;
    const expected = `{"__proto__":{"polluted":1},"out":{"c":2,"fee":3}}`;
    for (const order of [pairs, [...pairs].reverse()]) {
      const mapped = mapOutputs({ outputMapping: Object.fromEntries(order) }, source);
      expect(JSON.stringify(mapped)).toBe(expected);
    }
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    expect(readsOffer({ outputMapping: { '/payload/haip': '/x' } })).toBe(false);
  });

  it('builds the reference of an instance', () => {
    expect(instanceReference(sitePermit.instanceReference ?? {}, application, instanceId)).toBe(
      'TSP-AB-1234-6A7B',
    );
    expect(instanceReference({ fields: ['/x', '/y'], separator: '/' }, { x: 5, y: 'a\nb' }, instanceId)).toBe(
      '5/ab',
    );
    expect(instanceReference({ fields: ['/contact'] }, application, instanceId)).toBeUndefined();
    expect(instanceReference({ fields: ['/x'] }, { x: '€'.repeat(100) }, instanceId)).toBe('€'.repeat(64));
  });

  it('states a reason code only when it is one of the reasons', () => {
    const refused = actionOf(2).routes?.[1] ?? {};
    expect(reasonCodeOf(refused, { reasonCode: 'R-UNSAFE' })).toBe('R-UNSAFE');
    for (const reasonCode of ['a secret', 'constructor', 5, null]) {
      expect(reasonCodeOf(refused, { reasonCode })).toBeUndefined();
    }
    expect(reasonCodeOf({}, { reasonCode: 'R-UNSAFE' })).toBeUndefined();
    const reason = 'The site plan is not safe.';
    expect(decisionNotice(refused, 'R-UNSAFE')).toEqual({ adverse: true, reasonCode: 'R-UNSAFE', reason });
    expect(decisionNotice(refused, undefined)).toMatchObject({ adverse: true, reason: undefined });
    expect(decisionNotice({}, 'R-UNSAFE')).toBeUndefined();
  });
});
