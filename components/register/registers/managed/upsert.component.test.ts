import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { systemRegisterId } from '#core/ledger/register-id.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { organizationId } from '../../testing/register.ts';
import {
  adminKey,
  attest,
  hourMs,
  type Managed,
  operatorKey,
  personKey,
  set,
  startManaged,
} from './managed.fixture.ts';

describe('registers of custom resources', () => {
  let managed: Managed;
  beforeAll(async () => {
    managed = await startManaged('upsert');
  });
  afterAll(() => managed.register.stop());

  it('are created by one call, with the operator as owner and exactly the named validators', async () => {
    const uid = randomUUID();
    const made = await managed.put(uid, {
      description: 'of money',
      devMode: true,
      metadata: { sandbox: 'true' },
      policy: { governance: { quorumFormula: 'StrictMajority' }, consensus: { docketBuildIntervalMs: 500 } },
      validators: set.slice(0, 3),
    });
    expect([made.status, made.body.phase]).toEqual([200, 'GenesisSubmitted']);
    expect(made.body).toMatchObject({ uid, organizationId, title: 'Loans', pendingAttestations: [] });
    const { registerId } = made.body;
    expect(registerId).toMatch(/^[0-9a-f]{32}$/);
    await managed.sealed(registerId);
    const { body } = await managed.get(uid);
    expect(body).toMatchObject({
      uid,
      registerId,
      phase: 'Online',
      height: 1,
      devMode: true,
      metadata: { sandbox: 'true' },
      operatorRole: 'Owner',
      roster: [{ walletAddress: operatorKey.walletAddress, role: 'Owner' }],
      policyVersion: 1,
      policy: { governance: { quorumFormula: 'strict-majority' }, consensus: { docketBuildIntervalMs: 500 } },
      validators: { size: 3, quorum: 3, faultTolerance: 0, operational: 3, reachable: 3 },
      validation: 'Running',
      haltedReason: null,
      sync: { status: 'Synced', currentDocket: 1, progressPercent: 100 },
      mempool: { pending: 0 },
      outstanding: [],
      pendingProposals: [],
      deletion: null,
    });
    expect(body.validators.members.map((one: { validatorId: string }) => one.validatorId)).toEqual(
      set.slice(0, 3),
    );
    expect(body.genesisHash).toMatch(/^[0-9a-f]{64}$/);
    expect(body.headHash).toBe(body.genesisHash);
    expect(body.lastSealedTime).toMatch(/^2026-11-22T/);
    expect((await managed.get(registerId)).body).toEqual(body);
  });

  it('are created once, whatever the number of repeated and concurrent calls', async () => {
    const before = await managed.count();
    const uid = randomUUID();
    const answers = await Promise.all(Array.from({ length: 8 }, () => managed.put(uid)));
    const ids = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.registerId));
    expect(ids.size).toBe(1);
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 409)).toEqual(
      [],
    );
    expect((await managed.put(uid)).body.registerId).toBe([...ids][0]);
    expect(await managed.count()).toBe(before + 1);
    const inBody = await managed.register.call('POST', '/api/internal/registers', {
      token: 'operator',
      body: managed.spec({ uid }),
    });
    expect([inBody.status, inBody.body.registerId]).toEqual([200, [...ids][0]]);
  });

  describe('continue after a crash', () => {
    /** Each step at which a call may crash, by what fails there. */
    const crashes: readonly [string, () => () => void][] = [
      ['before the wallets were asked', () => failing('subjectWallets')],
      ['before the roster was known', () => failing('attestationKeys')],
      ['before the operator attested', () => failing('signDigest')],
      ['before the genesis was built', () => failing('systemKey')],
    ];
    function failing(name: 'subjectWallets' | 'attestationKeys' | 'signDigest' | 'systemKey'): () => void {
      const kept = managed.register.wallets[name];
      const fail = async () => {
        throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'the process ended here');
      };
      Object.assign(managed.register.wallets, { [name]: fail });
      return () => Object.assign(managed.register.wallets, { [name]: kept });
    }

    test.each(crashes)('%s', async (_where, crash) => {
      const before = await managed.count();
      const uid = randomUUID();
      const mend = crash();
      expect((await managed.put(uid)).status).toBe(503);
      const left = await managed.register.database.pool.query(
        'select register_id from managed_registers where uid = $1',
        [uid],
      );
      mend();
      expect(await managed.count()).toBe(before);
      const again = await managed.put(uid);
      expect([again.status, again.body.registerId]).toEqual([200, left.rows[0].register_id]);
      expect(await managed.count()).toBe(before + 1);
      await managed.sealed(again.body.registerId);
      expect((await managed.put(uid)).body).toMatchObject({ phase: 'Online', height: 1 });
    });

    test('before the validators proved their keys, and names the unreachable ones', async () => {
      const uid = randomUUID();
      managed.register.validators.away.add('validator-2');
      const refused = await managed.put(uid);
      managed.register.validators.away.clear();
      expect([refused.status, refused.body.code, refused.body.absent]).toEqual([
        502,
        'VALIDATOR_SET_UNAVAILABLE',
        ['validator-2'],
      ]);
      const unknown = await managed.put(uid, { validators: [...set, 'validator-9'] });
      expect([unknown.status, unknown.body.absent]).toEqual([502, ['validator-9']]);
      expect((await managed.get(uid)).body).toMatchObject({
        phase: 'Pending',
        pendingAttestations: [],
        height: 0,
      });
      expect((await managed.put(uid)).body.phase).toBe('GenesisSubmitted');
    });
  });

  it('wait for owners whose keys the operator does not hold', async () => {
    const uid = randomUUID();
    const owners = [{ walletAddress: personKey.walletAddress }];
    const admins = [{ walletAddress: adminKey.walletAddress }];
    const begun = await managed.put(uid, { owners, admins });
    expect([begun.status, begun.body.phase]).toEqual([200, 'AwaitingAttestations']);
    const [asked, later] = begun.body.pendingAttestations;
    expect([asked.walletAddress, asked.role]).toEqual([personKey.walletAddress, 'Owner']);
    expect(asked.expiresAt).toBe(new Date(managed.clock.nowMs() + 24 * hourMs).toISOString());
    expect(begun.body).toMatchObject({ title: 'Loans', validators: { size: 0 }, operatorRole: null });
    // An identical request asks for the same attestations.
    expect((await managed.put(uid, { owners, admins })).body.pendingAttestations).toEqual([asked, later]);
    const forged = await managed.put(uid, { owners, admins, attestations: [attest(asked, adminKey)] });
    expect([forged.status, forged.body.code]).toEqual([401, 'ATTESTATION_INVALID']);
    const path = `/api/registers/${begun.body.registerId}/attestations`;
    const strange = await managed.register.call('POST', path, {
      token: 'stranger',
      body: { autoAttest: true },
    });
    expect([strange.status, strange.body.code]).toEqual([403, 'SENDER_NOT_AUTHORIZED']);
    const own = await managed.register.call('POST', path, { token: 'user', body: { autoAttest: true } });
    expect([own.status, own.body.missing]).toEqual([
      200,
      [{ walletAddress: adminKey.walletAddress, role: 'Admin' }],
    ]);
    const done = await managed.put(uid, { owners, admins });
    expect(done.body).toMatchObject({
      phase: 'GenesisSubmitted',
      roster: [{ walletAddress: personKey.walletAddress, role: 'Owner' }],
      operatorRole: null,
    });
    expect(
      (await managed.register.call('POST', path, { token: 'user', body: { autoAttest: true } })).status,
    ).toBe(404);
    await managed.sealed(done.body.registerId);
    const refused = await managed.change(uid, { change: 'metadata', title: 'Mine' });
    expect([refused.status, refused.body.code]).toEqual([403, 'NOT_ON_ROSTER']);
    const kept = await managed.remove(uid, 'Tombstone');
    expect([kept.status, kept.body.code]).toEqual([403, 'DELETE_NOT_ATTESTED']);
  });

  it('get a new draft for another spec, and when the last one expired, under the same id', async () => {
    const uid = randomUUID();
    const owners = [{ walletAddress: personKey.walletAddress }];
    const first = (await managed.put(uid, { owners })).body;
    const [asked] = first.pendingAttestations;
    const renamed = (await managed.put(uid, { owners, title: 'Debts' })).body;
    expect([renamed.registerId, renamed.title]).toEqual([first.registerId, 'Debts']);
    const stale = await managed.put(uid, {
      owners,
      title: 'Debts',
      attestations: [attest(asked, personKey)],
    });
    expect(stale.status).toBe(401);
    managed.clock.advance(24 * hourMs);
    const path = `/api/registers/${first.registerId}/attestations`;
    const late = await managed.register.call('POST', path, { token: 'user', body: { autoAttest: true } });
    expect([late.status, late.body.code]).toEqual([410, 'REGISTRATION_EXPIRED']);
    const anew = (await managed.put(uid, { owners, title: 'Debts' })).body;
    expect(anew.registerId).toBe(first.registerId);
    const [again] = anew.pendingAttestations;
    expect(again.dataToSign).not.toBe(renamed.pendingAttestations[0].dataToSign);
    const done = await managed.put(uid, { owners, title: 'Debts', attestations: [attest(again, personKey)] });
    expect(done.body).toMatchObject({ phase: 'GenesisSubmitted', title: 'Debts' });
  });

  it('create the system register under its id, once, and no other register under an id of their own', async () => {
    const registerId = systemRegisterId('default');
    const system = { purpose: 'System', organizationId: undefined, registerId };
    expect((await managed.put(randomUUID(), { registerId })).body.code).toBe('REGISTER_NOT_FOUND');
    const elsewhere = await managed.put(randomUUID(), { ...system, registerId: 'fe'.repeat(16) });
    expect(elsewhere.body.code).toBe('REGISTER_NOT_FOUND');
    const uid = randomUUID();
    expect((await managed.put(uid, system)).body).toMatchObject({ registerId, phase: 'GenesisSubmitted' });
    const record = () => managed.register.call('GET', '/api/system-register', { token: 'user' });
    expect((await record()).body).toMatchObject({ registerId, status: 'initializing' });
    expect((await managed.put(randomUUID(), system)).body.code).toBe('REGISTER_BOUND');
    await managed.sealed(registerId);
    expect((await managed.put(uid, system)).body).toMatchObject({ registerId, purpose: 'System' });
    await waitFor(
      async () => {
        if (managed.register.validators.pooled(registerId).length > 0)
          await managed.register.seal(registerId);
        return (await record()).body.status === 'ready';
      },
      { what: 'its blueprints' },
    );
  });

  it('need the wallet of the operator where that is the owner', async () => {
    managed.register.wallets.own('somebody-else', operatorKey);
    const refused = await managed.put(randomUUID());
    managed.register.wallets.own('operator', operatorKey);
    expect([refused.status, refused.body.code]).toEqual([422, 'OWNER_WALLET_REQUIRED']);
  });

  it('refuse invalid specs, and name the fault', async () => {
    const code = async (over: object, uid: string = randomUUID()) => {
      const { status, body } = await managed.put(uid, over);
      return [status, body.code];
    };
    expect(await code({ organizationId: undefined })).toEqual([400, 'INVALID_REQUEST']);
    expect(await code({ policy: { consensus: { maxDocketBytes: 1 } } })).toEqual([400, 'INVALID_POLICY']);
    expect(await code({ validators: [] })).toEqual([400, 'INVALID_REQUEST']);
    expect(await code({ owners: [{ operatorWallet: true }, { operatorWallet: true }] })).toEqual([
      400,
      'INVALID_REQUEST',
    ]);
    expect(await code({ colour: 'red' })).toEqual([400, 'INVALID_REQUEST']);
    expect((await managed.put('not-a-uid')).status).toBe(404);
    const { uid } = await managed.online();
    expect(await code({ organizationId: randomUUID() }, uid)).toEqual([400, 'IMMUTABLE_FIELD']);
    expect(await code({ purpose: 'System' }, uid)).toEqual([400, 'IMMUTABLE_FIELD']);
    expect((await managed.get(randomUUID())).body.code).toBe('REGISTER_NOT_FOUND');
    expect((await managed.get('ff'.repeat(16))).body.code).toBe('REGISTER_NOT_FOUND');
  });

  it.each(['admin', 'system', 'user', 'validator', 'blueprint'])('are closed to %s', async (token) => {
    const { uid, registerId } = { uid: randomUUID(), registerId: 'ff'.repeat(16) };
    const answers = [
      await managed.put(uid, {}, token),
      await managed.get(uid, token),
      await managed.remove(registerId, 'Purge', token),
      await managed.register.call('POST', '/api/internal/registers', { token, body: managed.spec({ uid }) }),
      await managed.register.call('POST', `/api/internal/registers/${uid}/changes`, { token, body: {} }),
      await managed.register.call('PUT', `/api/internal/registers/${uid}/validation`, { token, body: {} }),
    ];
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(
      answers.map(() => [403, 'FORBIDDEN']),
    );
    expect((await managed.register.call('GET', `/api/internal/registers/${uid}`, {})).status).toBe(401);
  });
});
