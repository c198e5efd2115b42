import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../encoding/jcs.ts';
import type { JsonObject } from '../../encoding/json.ts';
import { applyStep, findStep, foldInstance, type Instance } from './instance.ts';
import { isStep, judgeStep, type Predecessor, type StepContext, type StepRecord } from './judge.ts';
import { parseRouting, type Routing } from './routing.ts';
import { plainConcurrentActions, plainWorstRoutingLength } from './testing/plain-worst-routing.ts';
import { isAnotherStep, spoiltTexts } from './testing/spoilt.ts';
import { addressOf, arbChoices, arbDefinition, INSTANCE, PIN, randomWalk } from './testing/walks.ts';
import { compileWorkflow } from './workflow.ts';
import { concurrentActions, worstRoutingLength } from './worst-routing.ts';

const arbWalk = fc
  .tuple(arbDefinition, arbChoices)
  .map(([definition, choices]) => randomWalk(definition, choices));
const arbStep = arbWalk
  .filter(({ steps }) => steps.length > 0)
  .chain(({ steps }) => fc.constantFrom(...steps));

/** Definitions of 33 to 40 actions with a route each. */
const arbWide: fc.Arbitrary<JsonObject> = fc.integer({ min: 33, max: 40 }).chain((count) =>
  fc
    .array(fc.array(fc.nat(count - 1), { maxLength: 3 }), { minLength: count, maxLength: count })
    .map((targets) => ({
      id: 'wide',
      participants: [{ id: 'p' }],
      actions: targets.map((next, id) => ({
        id,
        sender: 'p',
        isStartingAction: id === 0,
        requiredPriorActions: id % 5 === 0 ? [(id * 7) % count] : [],
        routes: [{ id: 'x'.repeat((id % 3) + 1), nextActionIds: [...new Set(next)], branchDeadline: 'P1D' }],
      })),
    })),
);

// Properties share the machine with other suites: the limit is for a hang, not for speed.
const limit = { timeout: 60_000 };

describe('random walks', limit, () => {
  it('accepts every step that advance computes', () => {
    fc.assert(
      fc.property(arbWalk, ({ steps }) => {
        for (const { record, context } of steps) expect(judgeStep(record, context)).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  it('reaches long walks, fan-outs, deadlines and both ends', () => {
    const walks = fc.sample(arbWalk, { numRuns: 200, seed: 7 });
    const states = walks.flatMap(({ steps }) => steps.map(({ routing }) => routing));
    const count = (is: (routing: Routing) => boolean) => states.filter(is).length;
    expect(walks.filter(({ steps }) => steps.length >= 6).length).toBeGreaterThan(10);
    expect(count(({ current }) => current.length >= 3)).toBeGreaterThan(10);
    expect(count(({ current }) => current.some(({ branchKey }) => branchKey?.includes('/')))).toBeGreaterThan(
      20,
    );
    expect(count(({ current }) => current.some(({ until }) => until !== undefined))).toBeGreaterThan(10);
    expect(count(({ ended }) => ended === 'Completed')).toBeGreaterThan(10);
    expect(count(({ ended }) => ended === 'Rejected')).toBeGreaterThan(10);
    expect(count(({ reasonCode }) => reasonCode !== undefined)).toBeGreaterThan(10);
  });

  it('refuses a step of which one member of the routing is changed', () => {
    fc.assert(
      fc.property(arbStep, (step) => {
        for (const routing of spoiltTexts(step)) {
          if (isAnotherStep(routing, step)) continue;
          const record = { ...step.record, metadata: { ...step.record.metadata, routing } };
          expect(judgeStep(record, step.context), routing).not.toEqual([]);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('refuses another sender, type or id', () => {
    fc.assert(
      fc.property(arbStep, ({ record, context, routing }) => {
        const refused = (other: Partial<StepRecord>, around: Partial<StepContext> = {}) =>
          expect(judgeStep({ ...record, ...other }, { ...context, ...around })[0]?.code);
        // The sender of a role that the step itself binds is part of its routing.
        refused({ senderAddress: addressOf('m') }).toMatch(/^VAL_BP_00[23]$/);
        refused({ type: record.type === 'Action' ? 'Rejection' : 'Action' }).toBe('VAL_BP_003');
        refused({ blueprintId: 'other' }).toBe('VAL_BP_003');
        refused({ blueprintId: undefined }).toBe('VAL_BP_003');
        for (const actionId of ['999', `0${record.actionId}`, undefined])
          refused({ actionId }).toBe('VAL_BP_003');
        for (const previousTransactionId of ['ef'.repeat(32), undefined]) {
          refused({ previousTransactionId }).toBe('VAL_BP_003');
        }
        if (routing.seq > 0) refused({ previousTransactionId: PIN }).toMatch(/^VAL_BP_00[13]$/);
        refused({ metadata: { routing: record.metadata['routing'] ?? '' } }).toBe('VAL_BP_003');
        refused({}, { workflow: undefined }).toBe('VAL_BP_VERSION_001');
        refused({}, { isPinKnown: false }).toBe('VAL_BP_VERSION_001');
      }),
      { numRuns: 100 },
    );
  });

  it('refuses another predecessor', () => {
    const later = arbStep.filter(({ routing }) => routing.seq > 0);
    fc.assert(
      fc.property(later, ({ record, context }) => {
        const { predecessor = expect.unreachable() } = context;
        const refused = (other: Partial<Predecessor>) =>
          expect(judgeStep(record, { ...context, predecessor: { ...predecessor, ...other } })[0]?.code);
        expect(judgeStep(record, { ...context, predecessor: undefined })[0]?.code).toBe('VAL_BP_003');
        refused({ type: 'Participant' }).toBe('VAL_BP_003');
        refused({ routing: undefined }).toBe('VAL_BP_003');
        refused({ routing: `${predecessor.routing} ` }).toBe('VAL_BP_003');
        refused({ txId: '00'.repeat(32) }).toBe('VAL_BP_003');
        const before = parseRouting(predecessor.routing ?? '') ?? expect.unreachable();
        const moved = { ...before, blueprintDefinitionTxId: 'cd'.repeat(32) };
        refused({ routing: canonicalJson(moved) }).toBe('VAL_BP_VERSION_001');
        const other = { ...before, instanceId: INSTANCE.replace('7', '8') };
        refused({ routing: canonicalJson(other) }).toBe('VAL_BP_003');
        refused({ routing: canonicalJson({ ...before, ended: 'Completed' }) }).toBe('VAL_BP_003');
        refused({ routing: canonicalJson({ ...before, seq: before.seq + 1 }) }).toBe('VAL_BP_003');
      }),
      { numRuns: 100 },
    );
  });

  it('refuses whatever else follows a step, and leaves other records alone', () => {
    fc.assert(
      fc.property(arbStep, fc.constantFrom('Action', 'Rejection', 'Control', 'Revocation'), (step, type) => {
        const { txId, metadata } = step.record;
        const plain = {
          type,
          previousTransactionId: txId,
          senderAddress: addressOf('m'),
          createdAt: '',
          metadata: {},
        };
        const predecessor = { txId, type: step.record.type, routing: metadata['routing'] };
        expect(judgeStep(plain, { ...step.context, predecessor })).toMatchObject([{ code: 'VAL_BP_003' }]);
        const unrouted = { txId, type: 'Action' };
        expect(judgeStep(plain, { ...step.context, predecessor: unrouted })).toEqual([]);
        const elsewhere = { ...predecessor, type: 'Participant' };
        expect(judgeStep(plain, { ...step.context, predecessor: elsewhere })).toEqual([]);
        expect(isStep({ ...plain, metadata })).toBe(type === 'Action' || type === 'Rejection');
      }),
      { numRuns: 50 },
    );
  });

  it('keeps current unique, ascending, and within the worst length', () => {
    fc.assert(
      fc.property(arbWalk, ({ steps, workflow }) => {
        const worst = worstRoutingLength(workflow);
        for (const { routing, record } of steps) {
          const ids = routing.current.map(({ actionId }) => actionId);
          expect(ids).toEqual([...new Set(ids)].sort((one, other) => one - other));
          expect(ids.length).toBeLessThanOrEqual(workflow.actions.size);
          expect(record.metadata['routing']?.length).toBeLessThanOrEqual(worst);
        }
      }),
      { numRuns: 150 },
    );
  });

  it.each([
    ['small definitions', arbDefinition, 1_000],
    ['definitions with more actions than a word of a set has bits', arbWide, 40],
  ])(
    'has the worst length and the concurrent actions of the plainest computation for %s',
    (_, arb, numRuns) => {
      fc.assert(
        fc.property(arb, (definition) => {
          const workflow = compileWorkflow(definition) ?? expect.unreachable();
          expect(concurrentActions(workflow)).toEqual(plainConcurrentActions(workflow));
          expect(worstRoutingLength(workflow)).toBe(plainWorstRoutingLength(workflow));
        }),
        { numRuns },
      );
    },
  );

  it('folds records in any order to the same instance', () => {
    const shuffled = arbWalk.chain(({ steps }) =>
      fc.tuple(fc.constant(steps), fc.shuffledSubarray([...steps], { minLength: steps.length }), fc.nat(50)),
    );
    fc.assert(
      fc.property(shuffled, ([steps, order, noise]) => {
        let instance: Instance | undefined;
        for (const { sealed } of steps) instance = applyStep(instance, sealed) ?? expect.unreachable();
        const records = order.map(({ sealed }) => sealed);
        const first = steps[0]?.sealed;
        // A later start of the same id, and a step behind it, are no part of the instance.
        const second = first && {
          ...first,
          txId: 'fe'.repeat(32),
          position: { docketNumber: 900, index: 0 },
          senderAddress: addressOf('m'),
        };
        if (second !== undefined) records.splice(noise % (records.length + 1), 0, second);
        expect(foldInstance(records)).toEqual(instance);
        for (const { record, sealed } of steps) {
          const { position, sealedAt } = sealed;
          expect(findStep({ ...record, position, sealedAt })).toEqual(sealed);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('does not apply a step that is not the next one', () => {
    fc.assert(
      fc.property(arbWalk, ({ steps }) => {
        let instance: Instance | undefined;
        for (const { sealed } of steps) {
          for (const other of steps) {
            if (other.sealed !== sealed) expect(applyStep(instance, other.sealed)).toBeUndefined();
          }
          instance = applyStep(instance, sealed);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('any input', limit, () => {
  const arbText = fc.oneof(fc.string(), fc.json(), fc.string({ unit: 'binary' }));
  const arbContext = fc.record({
    workflow: fc.oneof(arbDefinition, fc.object()).map(compileWorkflow),
    isPinKnown: fc.boolean(),
    predecessor: fc.option(
      fc.record({ txId: arbText, type: fc.constantFrom('Action', 'Control'), routing: arbText }),
      { nil: undefined },
    ),
    nowTicks: fc.bigInt(),
  });

  it('gets an answer from the judge', () => {
    const arbRecord = fc.record({
      type: fc.constantFrom('Action', 'Rejection', 'Control'),
      blueprintId: arbText,
      actionId: arbText,
      previousTransactionId: arbText,
      senderAddress: arbText,
      createdAt: arbText,
      metadata: fc.record({ routing: arbText, instanceId: arbText }, { requiredKeys: [] }),
    });
    fc.assert(
      fc.property(arbRecord, arbContext, (record, context) => {
        expect(judgeStep(record, context).length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 150 },
    );
  });

  it('gets an answer when predecessor and definition have nothing to do with each other', () => {
    fc.assert(
      fc.property(arbStep, arbStep, (step, other) => {
        const predecessor = {
          txId: step.record.previousTransactionId ?? '',
          type: 'Action',
          routing: other.record.metadata['routing'],
        };
        const around = { ...step.context, predecessor };
        expect(judgeStep(step.record, { ...around, workflow: other.context.workflow }).length).toBeLessThan(
          2,
        );
        expect(judgeStep(step.record, around).length).toBeLessThan(2);
      }),
      { numRuns: 100 },
    );
  });

  it('compiles, or does not, any value in the place of any member', () => {
    const arbValue = fc.oneof(fc.anything(), fc.jsonValue());
    const places = ['id', 'participants', 'actions'];
    fc.assert(
      fc.property(
        arbDefinition,
        arbValue,
        fc.constantFrom(...places),
        fc.nat(),
        (definition, value, place, at) => {
          const spoilt = JSON.parse(JSON.stringify(definition));
          compileWorkflow({ ...spoilt, [place]: value });
          const list = spoilt[place === 'id' ? 'actions' : place];
          const item = list[at % list.length];
          const names = Object.keys(item);
          item[names[at % names.length] ?? ''] = value;
          compileWorkflow(spoilt);
        },
      ),
      { numRuns: 400 },
    );
  });
});
