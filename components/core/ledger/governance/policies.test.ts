import { describe, expect, it } from 'vitest';
import type { CryptoPolicy } from '../control-record.ts';
import { isDefaultPolicy } from '../policy.ts';
import { judgeCrypto } from './policies.ts';
import { activeMembers } from './rules.ts';
import { entryOf, owner, person, registerId, Scene, system } from './testing/scene.ts';

const admin = person(2, 'NISTP256');
const fifth = person(60);

const update = (
  scene: Scene,
  policy: Record<string, unknown>,
  transitionMode?: 'immediate' | 'grace-period',
) => {
  const members = transitionMode === undefined ? { policy } : { policy, transitionMode };
  return scene.decide(scene.operation('policy-update', owner, members), owner);
};

describe('the register policy', () => {
  it('is replaced by its next version, stamped by the docket, with unknown members kept', () => {
    const scene = new Scene();
    const { timestamp } = scene.context;
    expect(isDefaultPolicy(scene.rules.policy)).toBe(true);
    expect(update(scene, { version: 2, consensus: { maxTransactionsPerDocket: 7 }, ours: 1 })).toEqual([]);
    expect(scene.rules.policy).toMatchObject({
      version: 2,
      consensus: { maxTransactionsPerDocket: 7 },
      ours: 1,
      updatedAt: timestamp,
      updatedBy: owner.did,
    });
    expect(isDefaultPolicy(scene.rules.policy)).toBe(false);
    expect(update(scene, { version: 2 })).toEqual(['VAL_POLICY_004']);
    expect(update(scene, { version: 4 })).toEqual(['VAL_POLICY_004']);
    expect(
      scene.act(
        'control.config.update',
        scene.payload(scene.operation('policy-update', owner, { policy: { version: 3 } })),
        owner,
      ),
    ).toEqual([]);
  });

  it.each([
    ['a value out of range', { consensus: { maxTransactionsPerDocket: 0 } }, 'VAL_POLICY_005'],
    ['another election', { leaderElection: { mechanism: 'raft' } }, 'VAL_POLICY_005'],
    ['a stake', { validators: { requireStake: true } }, 'VAL_POLICY_005'],
    ['dockets that are never timely', { consensus: { precisionMs: 1 } }, 'VAL_POLICY_005'],
    ['no time for messages', { consensus: { messageDelayMs: 999 } }, 'VAL_POLICY_005'],
    ['no room for a change back', { consensus: { maxTransactionBytes: 512 } }, 'VAL_POLICY_005'],
    ['another governance blueprint', { governance: { blueprintVersion: 'mine' } }, 'VAL_POLICY_005'],
    ['more validators than there are', { validators: { minValidators: 5 } }, 'VAL_POLICY_006'],
    ['fewer validators than there are', { validators: { maxValidators: 3 } }, 'VAL_POLICY_006'],
  ])('%s is refused', (_, change, code) => {
    expect(update(new Scene(), { version: 2, ...change })).toEqual([code]);
  });

  it('raises the quorum of the roster from the next docket on', () => {
    const scene = new Scene({
      members: [
        [admin, 'Admin'],
        [person(3), 'Admin'],
        [person(4), 'Admin'],
      ],
    });
    const policy = { version: 2, governance: { quorumFormula: 'unanimous' } };
    const operation = scene.operation('policy-update', owner, { policy });
    expect(scene.decide(operation, owner, admin, person(3))).toEqual([]);
    const next = scene.operation('policy-update', owner, { policy: { ...policy, version: 3 } });
    expect(scene.decide(next, owner, admin, person(3))).toEqual(['VAL_PERM_008']);
    expect(scene.decide(next, owner, admin, person(3), person(4))).toEqual([]);
  });
});

describe('from public to consent', () => {
  const open = () => {
    const scene = new Scene({ policy: { validators: { registrationMode: 'public' } } });
    const payload = { version: 2, registerId, validatorEntry: entryOf('validator-4', fifth) };
    expect(scene.act('control.validator.register', payload, fifth)).toEqual([]);
    return scene;
  };
  const closed = { version: 2, validators: { registrationMode: 'consent', operationalTtlSeconds: 120 } };
  const members = (scene: Scene) => activeMembers(scene.rules).length;

  it('needs a transition mode', () => {
    expect(update(open(), closed)).toEqual(['VAL_POLICY_005']);
  });

  it('at once: members without approval leave with the next docket, whatever the register holds', () => {
    const scene = open();
    expect(update(scene, closed, 'immediate')).toEqual([]);
    expect(members(scene)).toBe(5);
    expect(scene.seal()).toMatchObject({ ejected: ['validator-4'] });
    expect(members(scene)).toBe(4);
    expect(scene.statusOf('validator-4')).toBe('Removed');
    const before = scene.rules;
    expect(scene.seal()).toMatchObject({ ejected: [], changes: [] });
    expect(scene.rules).toBe(before);
  });

  it('with grace: after one operational TTL, unless they are approved by then', () => {
    const scene = open();
    expect(update(scene, closed, 'grace-period')).toEqual([]);
    expect(scene.seal()).toMatchObject({ ejected: [] });
    expect(scene.seal()).toMatchObject({ ejected: ['validator-4'] });
    const approved = open();
    expect(update(approved, closed, 'grace-period')).toEqual([]);
    const entry = { validatorEntry: entryOf('validator-4', fifth) };
    expect(approved.decide(approved.operation('add-validator', owner, entry), owner)).toEqual([]);
    approved.seal();
    expect(approved.seal()).toMatchObject({ ejected: [] });
    expect(members(approved)).toBe(5);
  });

  it('from consent to public no member leaves', () => {
    const scene = open();
    expect(update(scene, closed, 'grace-period')).toEqual([]);
    expect(update(scene, { version: 3, validators: { registrationMode: 'public' } })).toEqual([]);
    scene.seal();
    expect(scene.seal()).toMatchObject({ ejected: [] });
  });

  it('not at once when that would change too much of the set', () => {
    const scene = new Scene({ policy: { validators: { registrationMode: 'public' } } });
    for (const fill of [70, 71, 72]) {
      const payload = { version: 2, registerId, validatorEntry: entryOf(`v-${fill}`, person(fill)) };
      expect(scene.act('control.validator.register', payload, person(fill))).toEqual([]);
    }
    expect(update(scene, closed, 'immediate')).toEqual([]);
    expect(scene.seal()).toMatchObject({ ejected: ['v-70', 'v-71'] });
    expect(scene.seal()).toMatchObject({ ejected: ['v-72'] });
    expect(members(scene)).toBe(4);
  });
});

describe('the crypto policy', () => {
  const next = (scene: Scene, change: Partial<CryptoPolicy> = {}): CryptoPolicy => ({
    ...scene.rules.cryptoPolicy,
    version: scene.rules.cryptoPolicy.version + 1,
    ...change,
  });
  const off = (scene: Scene, change: Partial<CryptoPolicy> = {}) => ({
    version: 2,
    registerId,
    cryptoPolicy: next(scene, { devMode: false, ...change }),
  });
  const action = 'control.crypto.update';

  it('the register-control key turns development mode off once, and changes nothing else', () => {
    const scene = new Scene({ devMode: true, members: [[admin, 'Admin']] });
    expect(
      scene.act(action, off(scene, { acceptedSignatureAlgorithms: ['ED25519', 'NISTP256'] }), system),
    ).toEqual(['VAL_PERM_008']);
    expect(scene.act(action, off(scene), owner)).toEqual(['VAL_PERM_008']);
    expect(scene.act(action, off(scene), person(7))).toEqual(['VAL_PERM_001']);
    expect(scene.act(action, { ...off(scene), registerId: 'f'.repeat(32) }, system)).toEqual([
      'VAL_CHAIN_002',
    ]);
    expect(scene.act(action, { ...off(scene), cryptoPolicy: {} }, system)).toEqual(['VAL_SCHEMA_001']);
    expect(scene.act(action, off(scene), system)).toEqual([]);
    expect(scene.rules.cryptoPolicy).toMatchObject({ devMode: false, version: 2 });
    expect(scene.act(action, off(scene), system)).toEqual(['VAL_PERM_008']);
    expect(scene.act(action, off(scene, { devMode: true }), system)).toEqual(['VAL_POLICY_003']);
    expect(scene.act(action, off(scene, { devMode: true }), owner)).toEqual(['VAL_POLICY_003']);
    const cryptoPolicy = next(scene, { devMode: true });
    const again = scene.operation('crypto-policy-update', owner, { cryptoPolicy });
    expect(scene.decide(again, owner, admin)).toEqual(['VAL_POLICY_003']);
  });

  it('otherwise the roster decides', () => {
    const scene = new Scene({ members: [[admin, 'Admin']] });
    const decide = (change: Partial<CryptoPolicy>) => {
      const operation = scene.operation('crypto-policy-update', owner, { cryptoPolicy: next(scene, change) });
      return scene.act(action, scene.payload(operation, [admin]), owner);
    };
    expect(decide({ version: 9 })).toEqual(['VAL_POLICY_004']);
    expect(decide({ acceptedSignatureAlgorithms: ['ED25519'] })).toEqual(['VAL_POLICY_007']);
    expect(decide({ requiredSignatureAlgorithms: ['ED25519'] })).toEqual(['VAL_POLICY_007']);
    const only = { acceptedSignatureAlgorithms: ['ED25519', 'NISTP256'] as const };
    expect(decide({ ...only, requiredSignatureAlgorithms: ['RSA-4096'] })).toEqual(['VAL_POLICY_005']);
    expect(decide(only)).toEqual([]);
    expect(scene.rules.cryptoPolicy.acceptedSignatureAlgorithms).toEqual(['ED25519', 'NISTP256']);
  });

  it('judges the algorithms of every transaction', () => {
    const strict = next(new Scene(), {
      acceptedSignatureAlgorithms: ['ED25519', 'NISTP256'],
      deprecatedAlgorithms: ['NISTP256'],
    });
    const codes = (policy: CryptoPolicy, algorithms: string[]) =>
      judgeCrypto(policy, algorithms).map(({ code, severity }) => `${code} ${severity}`);
    expect(codes(strict, ['ED25519'])).toEqual([]);
    expect(codes(strict, ['ED25519', 'RSA-4096'])).toEqual(['VAL_POLICY_001 Error']);
    expect(codes(strict, ['NISTP256'])).toEqual(['VAL_POLICY_001 Warning']);
    const demanding: CryptoPolicy = { ...strict, requiredSignatureAlgorithms: ['ED25519'] };
    expect(codes(demanding, ['NISTP256', 'ED25519'])).toEqual(['VAL_POLICY_001 Warning']);
    expect(codes(demanding, ['NISTP256'])).toEqual(['VAL_POLICY_001 Warning', 'VAL_POLICY_002 Error']);
    const lax: CryptoPolicy = { ...demanding, enforcementMode: 'Permissive' };
    expect(codes(lax, ['RSA-4096'])).toEqual([]);
    expect(codes(lax, ['NISTP256'])).toEqual(['VAL_POLICY_001 Warning']);
  });
});

describe('name, description and metadata', () => {
  const action = 'control.register.updatemetadata';

  it('are changed by the register-control key, each when it is given', () => {
    const scene = new Scene();
    const payload = { version: 2, registerId, title: 'Credits', metadata: { sandbox: 'true' } };
    expect(scene.act(action, payload, system)).toEqual([]);
    expect(scene.rules).toMatchObject({ name: 'Credits', metadata: { sandbox: 'true' } });
    expect(scene.rules.description).toBeUndefined();
    expect(scene.act(action, { version: 2, registerId, description: 'All' }, system)).toEqual([]);
    expect(scene.rules).toMatchObject({ name: 'Credits', description: 'All' });
  });

  it.each([
    ['by the owner', owner, {}, 'VAL_PERM_003'],
    ['by a signer outside the roster', person(7), {}, 'VAL_PERM_001'],
    ['of another register', system, { registerId: 'f'.repeat(32) }, 'VAL_CHAIN_002'],
    ['without a name', system, { title: '' }, 'VAL_SCHEMA_001'],
    ['with a control character', system, { title: 'a\u0007' }, 'VAL_SCHEMA_001'],
    ['with a long description', system, { description: 'x'.repeat(2049) }, 'VAL_SCHEMA_001'],
    [
      'with too many members',
      system,
      { metadata: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, 'v'])) },
      'VAL_SCHEMA_001',
    ],
  ])('%s is refused', (_, signer, change, code) => {
    expect(new Scene().act(action, { version: 2, registerId, ...change }, signer)).toEqual([code]);
  });
});

describe('control transactions of other blueprints', () => {
  it('need signers that may send them, and change nothing', () => {
    const scene = new Scene({
      members: [
        [person(3), 'Designer'],
        [person(4), 'Auditor'],
      ],
    });
    const draft = { blueprintId: 'loan', actionId: 'blueprint-publish', metadata: {}, payload: {} };
    const before = scene.rules;
    for (const signer of [owner, system, person(3)]) {
      expect(scene.seal(scene.transaction(draft, [signer]))).toMatchObject({ changes: [] });
    }
    expect(scene.rules).toBe(before);
    expect(scene.seal(scene.transaction(draft, [person(7)]))).toMatchObject({
      violations: [{ code: 'VAL_PERM_001' }],
    });
    expect(scene.seal(scene.transaction(draft, [person(4)]))).toMatchObject({
      violations: [{ code: 'VAL_PERM_003' }],
    });
    expect(scene.seal(scene.transaction(draft, []))).toMatchObject({
      violations: [{ code: 'VAL_PERM_001' }],
    });
  });
});
