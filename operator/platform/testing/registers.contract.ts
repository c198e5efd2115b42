import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { walletAddress } from '#core/crypto/address.ts';
import type { DesiredRegister } from '../../plan/register/facts.ts';
import { policyDifferences } from '../../plan/register/policy.ts';
import type { Registers } from '../registers.ts';

export interface RegistersUnderTest {
  readonly registers: Registers;
  readonly organizationId: string;
  /** Validators that have announced themselves. */
  readonly validators: readonly string[];
  /** Seals the waiting transactions. */
  seal(registerId: string): Promise<void>;
  stop(): Promise<void>;
}

/** Contract of the register service and its fake. */
export function registersContract(name: string, start: () => Promise<RegistersUnderTest>): void {
  describe(`registers: ${name}`, () => {
    let subject: RegistersUnderTest;

    beforeAll(async () => {
      subject = await start();
    });
    afterAll(() => subject.stop());

    const wishOf = (over: Partial<DesiredRegister> = {}): DesiredRegister => ({
      title: 'Contract',
      purpose: 'General',
      organizationId: subject.organizationId,
      owners: [{ operatorWallet: true }],
      devMode: false,
      validators: subject.validators,
      ...over,
    });
    const online = async (over: Partial<DesiredRegister> = {}) => {
      const uid = randomUUID();
      const { registerId } = await subject.registers.upsert(uid, wishOf(over));
      await subject.seal(registerId);
      return { uid, registerId };
    };

    test('there is none for an unknown uid', async () => {
      expect(await subject.registers.find(randomUUID())).toBeUndefined();
    });

    test('one is created per uid, however often it is requested', async () => {
      const uid = randomUUID();
      const made = await subject.registers.upsert(uid, wishOf());
      const again = await Promise.all([1, 2, 3].map(() => subject.registers.upsert(uid, wishOf())));
      expect(new Set(again.map((each) => each.registerId))).toEqual(new Set([made.registerId]));
      expect(await subject.registers.find(uid)).toMatchObject({
        registerId: made.registerId,
        phase: 'GenesisSubmitted',
        height: 0,
        title: 'Contract',
        pendingAttestations: [],
      });
      await subject.seal(made.registerId);
      expect(await subject.registers.find(uid)).toMatchObject({
        phase: 'Online',
        height: 1,
        operatorRole: 'Owner',
        policyVersion: 1,
        validators: { size: subject.validators.length },
      });
    });

    test('another owner signs first', async () => {
      const uid = randomUUID();
      const { publicKey } = generateKeyPairSync('ed25519');
      const key = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
      const owner = walletAddress('ED25519', key);
      const desired = wishOf({ owners: [{ walletAddress: owner }] });
      expect(await subject.registers.upsert(uid, desired)).toMatchObject({
        phase: 'AwaitingAttestations',
        pendingAttestations: [{ walletAddress: owner, role: 'Owner' }],
      });
    });

    test('a change is requested once and takes effect when it is sealed', async () => {
      const { uid, registerId } = await online();
      const change = { change: 'metadata', title: 'Renamed' } as const;
      await subject.registers.change(uid, change);
      expect((await subject.registers.find(uid))?.outstanding).toMatchObject([{ aggregate: 'metadata' }]);
      await expect(subject.registers.change(uid, change)).rejects.toMatchObject({
        code: 'CHANGE_OUTSTANDING',
      });
      await subject.seal(registerId);
      expect(await subject.registers.find(uid)).toMatchObject({ title: 'Renamed', outstanding: [] });
    });

    test('a policy is written in PascalCase and read in the notation of the ledger', async () => {
      const { uid, registerId } = await online();
      const policy = {
        governance: { quorumFormula: 'Supermajority' as const },
        consensus: { docketBuildIntervalMs: 500, requireBoundTxId: true },
        leaderElection: { mechanism: 'Rotating' as const },
      };
      const before = await subject.registers.find(uid);
      expect(policyDifferences(policy, before?.policy ?? {}).map(({ field }) => field)).toEqual([
        'governance.quorumFormula',
        'consensus.docketBuildIntervalMs',
        'consensus.requireBoundTxId',
      ]);
      await subject.registers.change(uid, { change: 'policy', policy });
      await subject.seal(registerId);
      const after = await subject.registers.find(uid);
      expect(policyDifferences(policy, after?.policy ?? {})).toEqual([]);
      expect(after?.policyVersion).toBe(2);
    });

    test('development mode is switched off', async () => {
      const { uid, registerId } = await online({ devMode: true });
      expect(await subject.registers.find(uid)).toMatchObject({ devMode: true });
      await subject.registers.change(uid, { change: 'devModeOff' });
      await subject.seal(registerId);
      expect(await subject.registers.find(uid)).toMatchObject({ devMode: false });
    });

    test('Retain lets another resource adopt it, and only one', async () => {
      const { uid, registerId } = await online();
      await subject.registers.remove(uid, 'Retain');
      await subject.registers.remove(uid, 'Retain');
      expect(await subject.registers.find(uid)).toBeUndefined();
      const second = randomUUID();
      expect(await subject.registers.upsert(second, wishOf({ registerId }))).toMatchObject({
        registerId,
        phase: 'Online',
      });
      const third = randomUUID();
      await expect(subject.registers.upsert(third, wishOf({ registerId }))).rejects.toMatchObject({
        code: 'REGISTER_BOUND',
        members: { uid: second },
      });
      await subject.registers.upsert(third, wishOf({ registerId, replaces: second }));
      expect(await subject.registers.find(third)).toMatchObject({ registerId });
    });

    test('a missing one is not adopted', async () => {
      await expect(
        subject.registers.upsert(randomUUID(), wishOf({ registerId: 'f'.repeat(32) })),
      ).rejects.toMatchObject({ code: 'REGISTER_NOT_FOUND' });
    });

    test.each(['Tombstone', 'Purge'] as const)('%s is final', async (policy) => {
      const { uid } = await online();
      await subject.registers.remove(uid, policy);
      await subject.registers.remove(uid, policy);
      expect(await subject.registers.find(uid)).toMatchObject({ deletion: { policy } });
      await expect(subject.registers.upsert(uid, wishOf())).rejects.toMatchObject({
        code: 'REGISTER_DELETED',
      });
    });

    test('the registers of an organisation are counted', async () => {
      expect(await subject.registers.count(randomUUID())).toBe(0);
      const before = await subject.registers.count(subject.organizationId);
      const { uid } = await online();
      expect(await subject.registers.count(subject.organizationId)).toBe(before + 1);
      await subject.registers.remove(uid, 'Tombstone');
      expect(await subject.registers.count(subject.organizationId)).toBe(before);
    });

    test('nothing is removed for an unknown uid', async () => {
      await subject.registers.remove(randomUUID(), 'Purge');
    });
  });
}
