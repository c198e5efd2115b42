import { describe, expect, it } from 'vitest';
import { findRosterEntry, mayDelete } from './rules.ts';
import { owner, person, Scene, system } from './testing/scene.ts';

const admin = person(2);
const other = person(3, 'NISTP256');
const third = person(4);
const auditor = person(5);
const designer = person(6);
const stranger = person(7);

const board = () =>
  new Scene({
    members: [
      [admin, 'Admin'],
      [other, 'Admin'],
      [auditor, 'Auditor'],
      [designer, 'Designer'],
    ],
  });

describe('a roster of one', () => {
  it('the owner adds an admin alone, and then both must agree', () => {
    const scene = new Scene();
    const add = scene.operation('add-member', owner, {
      targetDid: admin.did,
      targetRole: 'Admin',
      targetKey: admin.key,
    });
    expect(scene.decide(add, owner)).toEqual([]);
    expect(scene.roleOf(admin)).toBe('Admin');
    expect(findRosterEntry(scene.rules, admin.did)?.grantedAt).toBe(scene.rules.roster[1]?.grantedAt);
    expect(scene.rules.rosterVersion).toBe(2);
    const next = scene.operation('add-member', owner, {
      targetDid: third.did,
      targetRole: 'Auditor',
      targetKey: third.key,
    });
    expect(scene.decide(next, owner)).toEqual(['VAL_PERM_008']);
    expect(scene.decide(next, owner, admin)).toEqual([]);
  });

  it('decides alone with a policy that lets the owner bypass the quorum, except on a transfer', () => {
    const scene = new Scene({
      members: [[admin, 'Admin']],
      policy: { governance: { ownerCanBypassQuorum: true } },
    });
    const add = scene.operation('add-member', owner, {
      targetDid: third.did,
      targetRole: 'Designer',
      targetKey: third.key,
    });
    expect(scene.decide(add, owner)).toEqual([]);
    const role = scene.operation('change-role', owner, { targetDid: third.did, targetRole: 'Auditor' });
    expect(scene.decide(role, owner)).toEqual([]);
    expect(scene.decide(scene.operation('remove-member', owner, { targetDid: third.did }), owner)).toEqual(
      [],
    );
    const transfer = scene.operation('transfer-ownership', owner, { targetDid: admin.did });
    expect(scene.decide(transfer, owner)).toEqual(['VAL_PERM_010']);
    const fromAdmin = scene.operation('add-member', admin, {
      targetDid: third.did,
      targetRole: 'Designer',
      targetKey: third.key,
    });
    expect(scene.decide(fromAdmin, admin)).toEqual(['VAL_PERM_008']);
  });
});

describe('a roster of three voters', () => {
  it('an admin alone removes no member, a quorum does; the target has no vote', () => {
    const scene = board();
    const remove = scene.operation('remove-member', admin, { targetDid: other.did });
    expect(scene.decide(remove, admin)).toEqual(['VAL_PERM_008']);
    expect(scene.decide(remove, admin, other)).toEqual(['VAL_PERM_008']);
    expect(scene.decide(remove, admin, owner)).toEqual([]);
    expect(scene.roleOf(other)).toBeUndefined();
  });

  it('an owner is neither removed nor demoted, only replaced by an admin that accepts', () => {
    const scene = board();
    const remove = scene.operation('remove-member', admin, { targetDid: owner.did });
    expect(scene.decide(remove, admin, other)).toEqual(['VAL_PERM_005']);
    const demote = scene.operation('change-role', admin, { targetDid: owner.did, targetRole: 'Admin' });
    expect(scene.decide(demote, admin, other)).toEqual(['VAL_PERM_005']);
    const designated = scene.operation('transfer-ownership', owner, { targetDid: designer.did });
    expect(scene.decide(designated, owner, admin, other)).toEqual(['VAL_PERM_006']);
    const transfer = scene.operation('transfer-ownership', owner, { targetDid: admin.did });
    expect(scene.decide(transfer, owner, other)).toEqual(['VAL_PERM_010']);
    expect(scene.decide(transfer, owner, admin)).toEqual([]);
    expect([scene.roleOf(owner), scene.roleOf(admin)]).toEqual(['Admin', 'Owner']);
    expect([mayDelete(scene.rules, admin.address), mayDelete(scene.rules, auditor.address)]).toEqual([
      true,
      false,
    ]);
  });

  it('a forged approval is not counted, and one approver is counted once', () => {
    const scene = board();
    const remove = scene.operation('remove-member', admin, { targetDid: auditor.did });
    const forged = { ...scene.approval(remove, stranger), approverDid: other.did };
    const payload = scene.payload({ ...remove, approvalSignatures: [forged, forged] });
    expect(scene.act('remove-member', payload, admin)).toEqual(['VAL_PERM_008']);
    const twice = [scene.approval(remove, admin), scene.approval(remove, admin)];
    const repeated = scene.payload({ ...remove, approvalSignatures: twice });
    expect(scene.act('remove-member', repeated, admin)).toEqual(['VAL_PERM_008']);
    const behindForged = scene.payload({
      ...remove,
      approvalSignatures: [forged, scene.approval(remove, other)],
    });
    expect(scene.act('remove-member', behindForged, admin)).toEqual([]);
  });

  it('a rejection is no approval, and it is final for its approver', () => {
    const scene = board();
    const remove = scene.operation('remove-member', admin, { targetDid: auditor.did });
    const votes = [scene.approval(remove, other, false), scene.approval(remove, other)];
    const payload = scene.payload({ ...remove, approvalSignatures: votes });
    expect(scene.act('remove-member', payload, admin)).toEqual(['VAL_PERM_008']);
    const flipped = [{ ...scene.approval(remove, other, false), isApproval: true }];
    const dishonest = scene.payload({ ...remove, approvalSignatures: flipped });
    expect(scene.act('remove-member', dishonest, admin)).toEqual(['VAL_PERM_008']);
  });

  it('members that sign the transaction beside the proposer approve by that', () => {
    const scene = board();
    const remove = scene.operation('remove-member', admin, { targetDid: auditor.did });
    expect(scene.act('remove-member', scene.payload(remove), admin, other)).toEqual([]);
  });

  it('an operation for another roster or another time, or one that was enacted before, is void', () => {
    const scene = board();
    const remove = scene.operation('remove-member', admin, { targetDid: auditor.did });
    const before = scene.payload(remove, [owner]);
    const add = scene.operation('add-member', owner, {
      targetDid: third.did,
      targetRole: 'Designer',
      targetKey: third.key,
    });
    expect(scene.decide(add, owner, other)).toEqual([]);
    expect(scene.act('remove-member', before, admin)).toEqual(['VAL_PERM_009']);
    const back = scene.operation('remove-member', owner, { targetDid: third.did });
    expect(scene.decide(back, owner, other)).toEqual([]);
    expect(scene.act('add-member', scene.payload(add, [other]), owner)).toEqual(['VAL_PERM_014']);
    expect(scene.act('remove-member', before, admin)).toEqual([]);
    const late = scene.operation('remove-member', admin, { targetDid: designer.did });
    scene.seconds += 7 * 86_400;
    expect(scene.decide(late, admin, owner)).toEqual(['VAL_PERM_013']);
    const early = scene.operation('remove-member', admin, { targetDid: designer.did });
    scene.seconds -= 600;
    expect(scene.decide(early, admin, owner)).toEqual(['VAL_PERM_013']);
  });

  it('only owner and admins propose, in their own name', () => {
    const scene = board();
    for (const [signer, code] of [
      [stranger, 'VAL_PERM_001'],
      [auditor, 'VAL_PERM_003'],
      [designer, 'VAL_PERM_003'],
      [system, 'VAL_PERM_003'],
    ] as const) {
      const remove = scene.operation('remove-member', signer, { targetDid: other.did });
      expect(scene.decide(remove, signer, owner, admin)).toEqual([code]);
    }
    const borrowed = scene.operation('remove-member', owner, { targetDid: other.did });
    expect(scene.decide(borrowed, admin, owner)).toEqual(['VAL_PERM_003']);
  });
});

describe('members', () => {
  it.each([
    ['a second owner', { targetRole: 'Owner' as const }, 'VAL_PERM_006'],
    ['a member that is there', { targetDid: other.did, targetKey: other.key }, 'VAL_PERM_018'],
    ['a member with the key of another member', { targetKey: third.key }, 'VAL_SIG_003'],
  ])('%s is refused', (_, change, code) => {
    const scene = board();
    const draft = { targetDid: stranger.did, targetRole: 'Admin' as const, targetKey: stranger.key };
    const add = scene.operation('add-member', owner, { ...draft, ...change });
    expect(scene.decide(add, owner, admin)).toEqual([code]);
  });

  it('at most 25 members are accepted', () => {
    const scene = new Scene();
    for (let fill = 100; fill < 124; fill += 1) {
      const one = person(fill);
      const draft = { targetDid: one.did, targetRole: 'Auditor' as const, targetKey: one.key };
      expect(scene.decide(scene.operation('add-member', owner, draft), owner)).toEqual([]);
    }
    const last = { targetDid: third.did, targetRole: 'Auditor' as const, targetKey: third.key };
    expect(scene.decide(scene.operation('add-member', owner, last), owner)).toEqual(['VAL_PERM_018']);
  });

  it('members are named, and get only another role', () => {
    const scene = board();
    const gone = scene.operation('remove-member', owner, { targetDid: stranger.did });
    expect(scene.decide(gone, owner, admin)).toEqual(['VAL_PERM_004']);
    const same = scene.operation('change-role', owner, { targetDid: auditor.did, targetRole: 'Auditor' });
    expect(scene.decide(same, owner, admin)).toEqual(['VAL_PERM_006']);
    const second = scene.operation('change-role', owner, { targetDid: admin.did, targetRole: 'Owner' });
    expect(scene.decide(second, owner, admin)).toEqual(['VAL_PERM_006']);
    const promoted = scene.operation('change-role', owner, { targetDid: auditor.did, targetRole: 'Admin' });
    expect(scene.decide(promoted, owner, admin)).toEqual([]);
    expect(scene.roleOf(auditor)).toBe('Admin');
  });

  it('the payload names the resulting roster', () => {
    const scene = board();
    const remove = scene.operation('remove-member', owner, { targetDid: auditor.did });
    const payload = { ...scene.payload(remove, [admin]), rosterHashAfter: 'ab'.repeat(32) };
    expect(scene.act('remove-member', payload, owner)).toEqual(['VAL_SCHEMA_001']);
  });
});

describe('invalid payloads', () => {
  it('data that the rules cannot contain: nested too deeply, or a member that programs parse differently', () => {
    const scene = board();
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    const decide = (note: unknown) => {
      const policy = { version: scene.rules.policy.version + 1, note };
      return scene.decide(scene.operation('policy-update', owner, { policy }), owner, admin);
    };
    expect(decide(nested(30))).toEqual(['VAL_SCHEMA_001']);
    expect(decide(JSON.parse('{"__proto__":1}'))).toEqual(['VAL_SCHEMA_001']);
    expect(decide(nested(29))).toEqual([]);
    expect(scene.rules.policy).toMatchObject({ note: nested(29) });
  });

  it.each([
    ['nothing', undefined],
    ['another version', { version: 1 }],
    ['an unknown member', { note: 'x' }],
  ])('%s is refused', (_, change) => {
    const scene = board();
    const payload = scene.payload(scene.operation('remove-member', owner, { targetDid: auditor.did }));
    const sent = change === undefined ? undefined : { ...payload, ...change };
    expect(scene.act('remove-member', sent, owner, admin)).toEqual(['VAL_SCHEMA_001']);
  });

  it('an action that does not match its operation, an unknown action and an operation that is too large', () => {
    const scene = board();
    const remove = scene.operation('remove-member', owner, { targetDid: auditor.did });
    expect(scene.act('add-member', scene.payload(remove), owner, admin)).toEqual(['VAL_SCHEMA_001']);
    expect(scene.act('control.everything', scene.payload(remove), owner)).toEqual(['VAL_SCHEMA_004']);
    expect(scene.act('toString', scene.payload(remove), stranger)).toEqual(['VAL_PERM_001']);
    const policy = { version: 2, note: 'x'.repeat(40_000) };
    const large = scene.operation('policy-update', owner, { policy });
    expect(scene.decide(large, owner, admin)).toEqual(['VAL_SIZE_001']);
  });
});
