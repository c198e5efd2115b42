import { describe, expect, it } from 'vitest';
import { activeMembers } from './rules.ts';
import { entryOf, keyOfValidator, owner, person, registerId, Scene, system } from './testing/scene.ts';

const admin = person(2);
const fifth = person(60);
const sixth = person(61);
const idsOf = (scene: Scene) => activeMembers(scene.rules).map(({ validatorId }) => validatorId);
const registration = (validatorId: string, holder = fifth) => ({
  version: 2,
  registerId,
  validatorEntry: entryOf(validatorId, holder),
});
const register = 'control.validator.register';

describe('joining', () => {
  it('with consent: a registration waits until the roster approves it, and counts from the next docket', () => {
    const scene = new Scene();
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual([]);
    expect(scene.statusOf('validator-4')).toBe('Pending');
    expect(idsOf(scene)).toHaveLength(4);
    const validatorEntry = entryOf('validator-4', fifth);
    const approve = scene.operation('add-validator', owner, { validatorEntry });
    expect(scene.act('control.validator.approve', scene.payload(approve), owner)).toEqual([]);
    expect(idsOf(scene)).toContain('validator-4');
    expect(scene.rules.validators.at(-1)).toMatchObject({
      status: 'Active',
      approvedBy: owner.did,
      effectiveFromDocket: 3,
    });
    expect(scene.rules.validatorSetVersion).toBe(3);
  });

  it('in public mode: a registration suffices', () => {
    const scene = new Scene({ policy: { validators: { registrationMode: 'public' } } });
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual([]);
    expect(scene.statusOf('validator-4')).toBe('Active');
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual(['VAL_PERM_017']);
  });

  it('becomes active once the register is public', () => {
    const scene = new Scene();
    expect(scene.act(register, registration('validator-4'), system)).toEqual([]);
    const policy = { version: 2, validators: { registrationMode: 'public' } };
    expect(scene.decide(scene.operation('policy-update', owner, { policy }), owner)).toEqual([]);
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual([]);
    expect(scene.statusOf('validator-4')).toBe('Active');
  });

  it.each([
    ['by a signer outside the roster', person(7), registration('validator-4'), 'VAL_PERM_001'],
    ['with an invalid payload', fifth, { version: 2 }, 'VAL_PERM_001'],
    ['with an invalid payload, from the roster', owner, { version: 2 }, 'VAL_SCHEMA_001'],
    [
      'on another register',
      fifth,
      { ...registration('validator-4'), registerId: 'f'.repeat(32) },
      'VAL_CHAIN_002',
    ],
    ['under the name of another validator', fifth, registration('validator-0'), 'VAL_PERM_017'],
    [
      'with the key of another validator',
      owner,
      registration('validator-4', keyOfValidator(0)),
      'VAL_PERM_017',
    ],
    ['with a P-256 key', owner, registration('validator-4', person(60, 'NISTP256')), 'VAL_SIG_001'],
    [
      'with a proof for another name',
      fifth,
      {
        ...registration('validator-4'),
        validatorEntry: { ...entryOf('validator-5', fifth), validatorId: 'validator-4' },
      },
      'VAL_SIG_002',
    ],
    [
      'with a proof that is no base64',
      fifth,
      {
        ...registration('validator-4'),
        validatorEntry: { ...entryOf('validator-4', fifth), proofOfPossession: '%' },
      },
      'VAL_SIG_002',
    ],
  ])('%s is refused', (_, signer, payload, code) => {
    expect(new Scene().act(register, payload, signer)).toEqual([code]);
  });

  it('accepts no more than maxValidators, and at most 100 pending registrations', () => {
    const full = new Scene({ policy: { validators: { maxValidators: 4 } } });
    const entry = { validatorEntry: entryOf('validator-4', fifth) };
    expect(full.decide(full.operation('add-validator', owner, entry), owner)).toEqual(['VAL_POLICY_006']);
    const scene = new Scene();
    for (let fill = 100; fill < 200; fill += 1) {
      expect(scene.act(register, registration(`v-${fill}`, person(fill)), system)).toEqual([]);
    }
    expect(scene.act(register, registration('v-200', person(200)), system)).toEqual(['VAL_PERM_018']);
  });

  it('an approval is for the key that registered, and needs a quorum', () => {
    const scene = new Scene({ members: [[admin, 'Admin']] });
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual([]);
    const other = scene.operation('add-validator', owner, { validatorEntry: entryOf('validator-4', sixth) });
    expect(scene.decide(other, owner, admin)).toEqual(['VAL_PERM_017']);
    const right = scene.operation('add-validator', owner, { validatorEntry: entryOf('validator-4', fifth) });
    expect(scene.decide(right, owner)).toEqual(['VAL_PERM_008']);
    expect(scene.decide(right, owner, admin)).toEqual([]);
    const again = scene.operation('add-validator', owner, { validatorEntry: entryOf('validator-4', fifth) });
    expect(scene.decide(again, owner, admin)).toEqual(['VAL_PERM_017']);
  });
});

describe('leaving', () => {
  it('keeps a quorum of the previous set and never less than minValidators', () => {
    const scene = new Scene();
    const remove = (validatorId: string) => {
      const operation = scene.operation('remove-validator', owner, { validatorId });
      return scene.act('control.validator.remove', scene.payload(operation), owner);
    };
    expect(remove('validator-3')).toEqual([]);
    expect(remove('validator-2')).toEqual(['VAL_PERM_011']);
    expect(remove('validator-3')).toEqual(['VAL_PERM_017']);
    expect(remove('validator-9')).toEqual(['VAL_PERM_017']);
    const least = new Scene({ policy: { validators: { minValidators: 4 } } });
    const one = least.operation('remove-validator', owner, { validatorId: 'validator-0' });
    expect(least.decide(one, owner)).toEqual(['VAL_PERM_011']);
  });

  it('rejects a pending registration', () => {
    const scene = new Scene({ validators: 1 });
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual([]);
    const reject = scene.operation('remove-validator', owner, { validatorId: 'validator-4' });
    expect(scene.decide(reject, owner)).toEqual([]);
    expect(scene.statusOf('validator-4')).toBe('Removed');
    expect(scene.act(register, registration('validator-4'), fifth)).toEqual(['VAL_PERM_017']);
  });

  it('for a time: a suspended validator is readmitted by approval', () => {
    const scene = new Scene();
    const suspend = scene.operation('suspend-validator', owner, { validatorId: 'validator-3' });
    expect(scene.act('control.validator.suspend', scene.payload(suspend), owner)).toEqual([]);
    expect(scene.statusOf('validator-3')).toBe('Suspended');
    expect(idsOf(scene)).not.toContain('validator-3');
    expect(scene.decide(suspend, owner)).toEqual(['VAL_PERM_014']);
    const foreign = { validatorEntry: entryOf('validator-3', sixth) };
    expect(scene.decide(scene.operation('add-validator', owner, foreign), owner)).toEqual(['VAL_PERM_017']);
    const back = { validatorEntry: entryOf('validator-3', keyOfValidator(3)) };
    expect(scene.decide(scene.operation('add-validator', owner, back), owner)).toEqual([]);
    expect(idsOf(scene)).toContain('validator-3');
  });
});

describe('another key', () => {
  it('counts from the next docket on, with its own proof', () => {
    const scene = new Scene();
    const rotate = (validatorId: string, holder: typeof fifth) =>
      scene.decide(
        scene.operation('rotate-validator-key', owner, { validatorEntry: entryOf(validatorId, holder) }),
        owner,
      );
    expect(rotate('validator-1', fifth)).toEqual([]);
    expect(activeMembers(scene.rules)[1]?.publicKey).toBe(fifth.key.publicKey);
    expect(rotate('validator-1', fifth)).toEqual(['VAL_PERM_017']);
    expect(rotate('validator-2', fifth)).toEqual(['VAL_PERM_017']);
    expect(rotate('validator-9', sixth)).toEqual(['VAL_PERM_017']);
  });
});

describe('one docket', () => {
  const add = (scene: Scene, id: string, fill: number) => {
    const entry = { validatorEntry: entryOf(id, person(fill)) };
    const operation = scene.operation('add-validator', owner, entry);
    return scene.transaction(
      {
        blueprintId: 'register-governance-v1',
        actionId: 'add-validator',
        metadata: {},
        payload: scene.payload(operation),
      },
      [owner],
    );
  };

  it('changes at most max(1, n / 3) members', () => {
    const four = new Scene();
    expect(four.seal(add(four, 'a', 70), add(four, 'b', 71))).toMatchObject({
      violations: [{ code: 'VAL_PERM_016' }],
    });
    expect(four.seal(add(four, 'a', 70))).toMatchObject({ changes: [{ setChanges: 1 }] });
    expect(four.seal(add(four, 'b', 71))).toMatchObject({ changes: [{ setChanges: 1 }] });
    expect(four.seal(add(four, 'c', 72), add(four, 'd', 73))).toMatchObject({ rules: { controlCount: 4 } });
    expect(idsOf(four)).toHaveLength(8);
  });

  it('removes no more members than the previous set tolerates, however the changes are mixed', () => {
    const scene = new Scene({ validators: 6, policy: { validators: { minValidators: 5 } } });
    const remove = (validatorId: string) => {
      const operation = scene.operation('remove-validator', owner, { validatorId });
      const draft = {
        blueprintId: 'register-governance-v1',
        actionId: 'remove-validator',
        metadata: {},
        payload: scene.payload(operation),
      };
      return scene.transaction(draft, [owner]);
    };
    expect(scene.seal(remove('validator-0'), remove('validator-1'))).toMatchObject({
      violations: [{ code: 'VAL_PERM_011' }],
    });
    expect(scene.seal(remove('validator-0'), add(scene, 'a', 70))).toMatchObject({
      rules: { controlCount: 2 },
    });
  });
});
