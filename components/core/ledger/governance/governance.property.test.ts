import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxSetChanges, quorum, validatorSetHash } from '../consensus.ts';
import { applyControls } from './apply.ts';
import { governanceDraft } from './build.ts';
import { type ControlContext, type ControlTransaction, controlTransaction } from './control.ts';
import { type Operation, TRANSITION_MODES } from './operation.ts';
import { activeMembers, type LedgerRules, rosterHash, votersOf } from './rules.ts';
import { parseRules, rulesJson } from './rules-json.ts';
import {
  bytesOf,
  entryOf,
  keyOfValidator,
  owner,
  type Person,
  person,
  registerId,
  Scene,
  system,
} from './testing/scene.ts';

const people = [owner, ...[2, 3, 4, 5, 6].map((fill) => person(fill))];
const validators = [0, 1, 2, 3, 4, 5, 6, 7].map(keyOfValidator);
const roles = ['Owner', 'Admin', 'Auditor', 'Designer'] as const;

interface Move {
  /** Index of the operation. */
  readonly act: number;
  readonly actor: number;
  readonly target: number;
  readonly choice: number;
  /** Other signers or approvers, one bit each. */
  readonly helpers: number;
  /** Form: at once, as a proposal, or in one docket with the next move. */
  readonly form: number;
}

const move: fc.Arbitrary<Move> = fc.record({
  act: fc.nat(13),
  actor: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(5) }),
  target: fc.nat(7),
  choice: fc.nat(3),
  helpers: fc.oneof({ weight: 4, arbitrary: fc.constant(63) }, { weight: 1, arbitrary: fc.nat(63) }),
  form: fc.nat(3),
});

const pick = <T>(items: readonly T[], at: number): T => {
  const item = items[at % items.length];
  if (item === undefined) throw new RangeError('nothing to pick from');
  return item;
};

const transitionModes: readonly (typeof TRANSITION_MODES)[number][] = TRANSITION_MODES;

function operationOf(scene: Scene, { act, actor, target, choice }: Move): Operation | undefined {
  const proposer = pick(people, actor);
  const { did: targetDid, key: targetKey } = pick(people, target);
  const targetRole = pick(roles, choice);
  const validatorId = `validator-${target}`;
  const validatorEntry = entryOf(validatorId, pick(validators, choice === 3 ? target + 1 : target));
  const version = scene.rules.policy.version + (choice === 3 ? 0 : 1);
  switch (act) {
    case 0:
      return scene.operation('add-member', proposer, { targetDid, targetRole, targetKey });
    case 1:
      return scene.operation('remove-member', proposer, { targetDid });
    case 2:
      return scene.operation('change-role', proposer, { targetDid, targetRole });
    case 3:
      return scene.operation('transfer-ownership', proposer, { targetDid });
    case 4:
    case 5:
      return scene.operation('add-validator', proposer, { validatorEntry });
    case 6:
      return scene.operation('remove-validator', proposer, { validatorId });
    case 7:
      return scene.operation('suspend-validator', proposer, { validatorId });
    case 8:
      return scene.operation('rotate-validator-key', proposer, { validatorEntry });
    case 9:
      return scene.operation('policy-update', proposer, {
        policy: {
          version,
          governance: { quorumFormula: pick(['strict-majority', 'supermajority', 'unanimous'], target) },
          validators: {
            registrationMode: pick(['public', 'consent'], choice),
            minValidators: 1 + (target % 4),
          },
        },
        transitionMode: pick(transitionModes, actor),
      });
    case 10: {
      const { cryptoPolicy } = scene.rules;
      const next = { ...cryptoPolicy, version: cryptoPolicy.version + 1, devMode: choice === 0 };
      return scene.operation('crypto-policy-update', proposer, { cryptoPolicy: next });
    }
    default:
      return undefined;
  }
}

const helpersOf = (scene: Scene, { helpers }: Move): Person[] =>
  people.filter((one, index) => (helpers & (1 << index)) !== 0 && scene.roleOf(one) !== undefined);

function transactionOf(scene: Scene, move: Move): ControlTransaction {
  const actor = pick(people, move.actor);
  const operation = operationOf(scene, move);
  const version = 2;
  if (operation !== undefined && move.form === 1) {
    const draft = governanceDraft('control.governance.propose', scene.payload(operation));
    return scene.transaction(draft, [actor, ...helpersOf(scene, move)]);
  }
  if (operation !== undefined) {
    const payload = scene.payload(operation, helpersOf(scene, move));
    return scene.transaction(governanceDraft(operation.operationType, payload), [actor]);
  }
  const proposal = scene.rules.proposals.at(move.target % Math.max(1, scene.rules.proposals.length));
  const proposalId = proposal?.proposalId ?? 'ab'.repeat(32);
  if (move.act === 11) {
    const payload = { version, proposalId, decision: pick(['approve', 'approve', 'reject'], move.choice) };
    return scene.transaction(governanceDraft('control.governance.approve', payload), [actor]);
  }
  if (move.act === 12) {
    const payload = { version, enactsProposalId: proposalId };
    return scene.transaction(governanceDraft('control.governance.enact', payload), [system]);
  }
  const holder = pick(validators, move.target);
  const validatorEntry = entryOf(`validator-${move.target}`, holder);
  const payload = { version, registerId, validatorEntry };
  return scene.transaction(governanceDraft('control.validator.register', payload), [holder]);
}

function checkInvariants(before: LedgerRules, after: LedgerRules): void {
  expect(after.roster.filter((entry) => entry.role === 'Owner')).toHaveLength(1);
  expect(votersOf(after).length).toBeGreaterThan(0);
  expect(new Set(after.roster.map((entry) => entry.subject)).size).toBe(after.roster.length);
  const [old, now] = [activeMembers(before), activeMembers(after)];
  validatorSetHash(now);
  const changed = now.filter((each) => !old.some((one) => one.publicKey === each.publicKey)).length;
  const gone = old.filter((each) => !now.some((one) => one.validatorId === each.validatorId)).length;
  expect(Math.max(changed, gone)).toBeLessThanOrEqual(maxSetChanges(old.length));
  const { minValidators } = after.policy.validators;
  if (now.length < old.length)
    expect(now.length).toBeGreaterThanOrEqual(Math.max(minValidators, quorum(old.length)));
  if (!before.cryptoPolicy.devMode) expect(after.cryptoPolicy.devMode).toBe(false);
  expect(after.policy.version - before.policy.version).toBeGreaterThanOrEqual(0);
  expect(parseRules(JSON.parse(rulesJson(after)))).toEqual(JSON.parse(rulesJson(after)));
  expect(rulesJson(parseRules(JSON.parse(rulesJson(after))))).toBe(rulesJson(after));
}

/** The transactions that fit in one docket, as a proposer chooses them. */
function fitting(rules: LedgerRules, waiting: readonly ControlTransaction[], context: ControlContext) {
  const chosen: ControlTransaction[] = [];
  for (const each of waiting) {
    const fold = applyControls(rules, [...chosen, each], context);
    if (!('violations' in fold)) chosen.push(each);
  }
  return chosen;
}

interface Sealed {
  readonly context: ControlContext;
  readonly transactions: readonly ControlTransaction[];
}

/** The transactions as they are parsed from sealed records. */
function reread({ payload, ...rest }: ControlTransaction): ControlTransaction {
  const record = {
    ...rest,
    type: 'Control' as const,
    registerId,
    payloadHash: '',
    payloadSize: 0,
    recipients: [],
    bound: true,
    signatures: rest.signers.map((key) => ({ ...key, signatureValue: '' })),
  };
  return controlTransaction(record, bytesOf(payload));
}

function play(moves: readonly Move[]) {
  const scene = new Scene({
    members: [
      [pick(people, 1), 'Admin'],
      [pick(people, 2), 'Designer'],
    ],
    devMode: true,
  });
  const genesis = scene.rules;
  const sealed: Sealed[] = [];
  let waiting: ControlTransaction[] = [];
  let accepted = 0;
  for (const move of moves) {
    waiting.push(transactionOf(scene, move));
    if (move.form === 2) continue;
    const [before, context] = [scene.rules, scene.context];
    const frozen = rulesJson(before);
    if (move.form !== 3) waiting = fitting(before, waiting, context);
    const fold = scene.seal(...waiting);
    expect(rulesJson(before)).toBe(frozen);
    if ('violations' in fold) {
      expect(fold.violations.length).toBeGreaterThan(0);
      expect(scene.rules).toBe(before);
    } else {
      accepted += fold.changes.length;
      checkInvariants(before, scene.rules);
      sealed.push({ context, transactions: waiting });
    }
    waiting = [];
  }
  return { genesis, sealed, rules: scene.rules, accepted };
}

describe('any sequence of governance', { timeout: 20_000 }, () => {
  it('keeps the invariants of a register, and a replay from genesis gives the same rules', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(move, { minLength: 1, maxLength: 30, size: 'max' }), (moves) => {
        const played = play(moves);
        accepted += played.accepted;
        let rules = parseRules(JSON.parse(rulesJson(played.genesis)));
        for (const { context, transactions } of played.sealed) {
          const fold = applyControls(rules, transactions.map(reread), context);
          if ('violations' in fold) throw new Error(fold.violations[0]?.code);
          rules = parseRules(JSON.parse(rulesJson(fold.rules)));
        }
        expect(rulesJson(rules)).toBe(rulesJson(played.rules));
      }),
      { numRuns: 25 },
    );
    expect(accepted).toBeGreaterThan(40);
  });

  it('hashes every roster differently, independent of the order of its members', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(people, { minLength: 1 }), fc.array(fc.nat(3)), (some, choices) => {
        const roster = some.map(({ did, key }, index) => ({
          subject: did,
          role: pick(roles, choices[index] ?? 0),
          ...key,
          grantedAt: '',
        }));
        const hash = rosterHash(registerId, roster);
        expect(rosterHash(registerId, roster.toReversed())).toBe(hash);
        expect(rosterHash('f'.repeat(32), roster)).not.toBe(hash);
        const [first, ...rest] = roster;
        if (first === undefined) return;
        const role = first.role === 'Admin' ? 'Auditor' : 'Admin';
        expect(rosterHash(registerId, [{ ...first, role }, ...rest])).not.toBe(hash);
      }),
    );
  });
});

/** A value with one nested member replaced. */
function mutated(value: unknown, path: readonly number[], by: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined || typeof value !== 'object' || value === null) return by;
  const entries = Object.entries(value);
  if (entries.length === 0) return by;
  const at = first % entries.length;
  const next = entries.map(([name, member], index) => [
    name,
    index === at ? mutated(member, rest, by) : member,
  ]);
  return Array.isArray(value) ? next.map(([, member]) => member) : Object.fromEntries(next);
}

const strange = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    -1,
    1e21,
    '',
    '0000-01-01T00:00:00+23:59',
    '9999-12-31T23:59:59-23:59',
    'did:platform:w:',
    null,
  ),
);

describe('any payload', { timeout: 20_000 }, () => {
  it('is sealed or refused with a code, and never throws anything else', () => {
    fc.assert(
      fc.property(move, fc.array(fc.nat(20), { maxLength: 4 }), strange, (given, path, by) => {
        const scene = new Scene({ members: [[pick(people, 1), 'Admin']], devMode: true });
        scene.seal(transactionOf(scene, { ...given, act: 7, actor: 0, form: 1, target: 3 }));
        const sound = transactionOf(scene, { ...given, actor: 0, helpers: 63 });
        const fold = scene.seal({ ...sound, payload: mutated(sound.payload, path, by) });
        if ('violations' in fold) expect(fold.violations[0]?.code).toMatch(/^VAL_/);
        else expect(rulesJson(parseRules(JSON.parse(rulesJson(fold.rules))))).toBe(rulesJson(fold.rules));
      }),
      { numRuns: 80 },
    );
  });
});

describe('rules as JSON', () => {
  it.each([
    ['nothing', undefined],
    ['another shape', { name: '' }],
    ['an unknown member', { other: 1 }],
    ['a status there is not', { validators: [{ status: 'Asleep' }] }],
  ])('%s is refused', (_, change) => {
    const json: unknown = JSON.parse(rulesJson(new Scene().rules));
    const given = change === undefined || typeof json !== 'object' ? undefined : { ...json, ...change };
    expect(() => parseRules(given)).toThrow(expect.objectContaining({ code: 'INVALID_RULES' }));
  });
});
