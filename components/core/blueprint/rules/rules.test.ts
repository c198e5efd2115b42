import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Blueprint } from '../model/blueprint.ts';
import { parseBlueprint } from '../model/parse.ts';
import { judgeDraft } from './draft.ts';
import { judgeBlueprint } from './judge.ts';
import {
  branch,
  type Definition,
  example,
  exampleText,
  nestedFanOuts,
  openParticipants,
  type Spoilt,
} from './testing/definitions.ts';
import { spoiltData } from './testing/spoilt-data.ts';
import { spoiltFlow } from './testing/spoilt-flow.ts';

type Spoil = (definition: Definition) => unknown;

const rules: Spoilt = { ...spoiltFlow, ...spoiltData };

const CYCLES = ['WARN_BP_CYCLE /actions/1/rejectionConfig', 'WARN_BP_CYCLE /actions/2/rejectionConfig'];

function parsed(definition: unknown): Blueprint {
  const result = parseBlueprint(definition);
  if ('findings' in result) throw new Error(JSON.stringify(result.findings));
  return result.blueprint;
}

function judged(definition: unknown, credentials = true): string[] {
  return judgeBlueprint(parsed(definition), { credentials }).map(
    ({ code, location }) => `${code} ${location}`,
  );
}

/** Findings of a spoilt copy of the example, beside those of the example. */
function findingsAfter(spoil: Spoil): string[] {
  const definition = example();
  spoil(definition);
  return judged(definition).filter((finding) => !CYCLES.includes(finding));
}

function withoutCredentials(definition: Definition): Definition {
  for (const action of definition.actions) {
    delete action.credentialRequirements;
    delete action.credentialIssuanceConfig;
  }
  return definition;
}

describe('the example', () => {
  test('can be published, and is told to have two cycles', () => {
    expect(judged(example())).toEqual(CYCLES);
    expect(judged(withoutCredentials(example()), true)).toEqual(CYCLES);
    expect(judged(withoutCredentials(example()), false)).toEqual(CYCLES);
  });

  test('needs a credential service', () => {
    expect(judged(example(), false)).toEqual([
      ...CYCLES,
      'VAL_BP_CRED_UNAVAILABLE /actions/0/credentialRequirements',
      'VAL_BP_CRED_UNAVAILABLE /actions/2/credentialIssuanceConfig',
    ]);
  });
});

describe('rules of publication', () => {
  test.each(Object.entries(rules))('%s', (_name, [findings, spoil]) => {
    expect(findingsAfter(spoil)).toEqual(findings);
  });

  test.each([
    [
      'a variable of an action before',
      (it: Definition) => (it.actions[2].calculations = { x: { var: 'safetyScore' } }),
    ],
    [
      'an explicit one',
      (it: Definition) => (it.actions[1].calculations = { x: { var: 'actions.0.hazardous' } }),
    ],
    [
      'a calculation of an action before',
      (it: Definition) => (it.actions[1].calculations = { x: { var: 'riskTier' } }),
    ],
    [
      'all data, which are disclosed',
      (it: Definition) => {
        it.actions[1].disclosures[0].dataPointers = ['/*'];
        it.actions[2].calculations = { all: { var: '' } };
      },
    ],
    [
      'a mapping of a calculation',
      (it: Definition) => {
        it.actions[0].routes[0].outputMapping = { '/calculations/riskTier': '/conditions' };
      },
    ],
    [
      'three levels of fan-outs',
      (it: Definition) => {
        it.actions[3].routes[0].nextActionIds = [10];
        it.actions.push(...nestedFanOuts(3), branch(16, []));
      },
    ],
    [
      '200 actions in a row',
      (it: Definition) => {
        it.actions[3].routes[0].nextActionIds = [4];
        it.actions.push(
          ...Array.from({ length: 196 }, (_, at) => branch(4 + at, at === 195 ? [] : [5 + at])),
        );
      },
    ],
    [
      'sixteen open participants',
      (it: Definition) => {
        delete it.instanceReference;
        it.participants.push(...openParticipants(15));
      },
    ],
  ] as const)('take %s', (_name, spoil) => {
    expect(findingsAfter(spoil)).toEqual([]);
  });

  test('every finding says something at a place that exists', () => {
    for (const [, spoil] of Object.values(rules)) {
      const definition = example();
      spoil(definition);
      for (const { message, location } of judgeBlueprint(parsed(definition), { credentials: true })) {
        expect(message.length).toBeGreaterThan(20);
        expect(location).toMatch(/^(?:\/(?:[^~/]|~[01])+)*$/);
      }
    }
  });

  test('answer any definition that can be parsed', () => {
    const id = fc.integer({ min: 0, max: 5 });
    const participant = fc.constantFrom('a', 'b', 'c');
    const action = fc.record(
      {
        id,
        title: fc.constant('Action'),
        sender: participant,
        isStartingAction: fc.boolean(),
        requiredPriorActions: fc.array(id, { maxLength: 3 }),
        disclosures: fc.array(
          fc.record({
            participantAddress: participant,
            dataPointers: fc.constantFrom(['/*'], ['/x'], ['x'], ['/x/0']),
          }),
          { minLength: 1, maxLength: 2 },
        ),
        calculations: fc.dictionary(fc.constantFrom('x', 'y'), fc.jsonValue({ maxDepth: 3 })),
        dataSchemas: fc.array(
          fc.constantFrom(true, { properties: { x: { type: 'array' } } }, { $ref: '#' }),
          {
            maxLength: 2,
          },
        ),
        routes: fc.array(
          fc.record(
            {
              id: fc.constantFrom('r', 's'),
              nextActionIds: fc.array(id, { maxLength: 3 }),
              isDefault: fc.boolean(),
            },
            { requiredKeys: ['id', 'nextActionIds'] },
          ),
          { maxLength: 3 },
        ),
        rejectionConfig: fc.record({ targetActionId: id, isTerminal: fc.boolean() }, { requiredKeys: [] }),
      },
      { requiredKeys: ['id', 'title', 'sender', 'disclosures'] },
    );
    fc.assert(
      fc.property(fc.array(action, { minLength: 1, maxLength: 6 }), (actions) => {
        const participants = ['a', 'b'].map((one) => ({ id: one, name: one }));
        const definition = {
          id: 'random',
          title: 'Random',
          description: 'Random one',
          participants,
          actions,
        };
        const findings = judgeBlueprint(parsed(definition), { credentials: false });
        expect(findings.filter(({ code }) => code === 'VAL_BP_WORKFLOW')).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});

describe('judgeDraft', () => {
  const judge = (draft: string) => judgeDraft(draft, { credentials: true });

  test('gives findings, the published form and its hashes', () => {
    const { findings, result } = judge(exampleText);
    expect(findings.map(({ code }) => code)).toEqual(['WARN_BP_CYCLE', 'WARN_BP_CYCLE']);
    expect(result).toEqual({
      definition: example(),
      contentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      execDefHash: '7f6a9f0ac61d990c8a7f04c29951252f38f80bdca9ee610ffd7d1438b44d022e',
      structuralHash: '07681d3529ae5f48b01f7b8476999f2b1d5aba0bc50bc9d5fd7511a15125fd53',
    });
    expect(structuredClone({ findings, result })).toEqual({ findings, result });
  });

  test.each([
    ['no JSON', '{', 'VAL_BP_JSON '],
    ['a member twice', '{"id":"ab","id":"ab"}', 'VAL_BP_JSON '],
    ['nesting of 65', '['.repeat(65), 'VAL_BP_JSON '],
    ['no object', '1', 'VAL_BP_FIELD '],
  ])('refuses %s', (_name, draft, finding) => {
    const { findings, result } = judge(draft);
    expect(findings.map(({ code, location }) => `${code} ${location}`)).toEqual([finding]);
    expect(result).toBeUndefined();
  });
});
