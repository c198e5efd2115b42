import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TURNS_ID, turnsDefinition } from '#core/blueprint/testing/turns.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { Caller } from '#core/identity/claims.ts';
import { createRpcClient, createRpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import {
  FindParticipantKeysRequestSchema,
  GetPayloadsRequestSchema,
  GetRegisterRequestSchema,
  ListPublicationsRequestSchema,
  ListRegistersRequestSchema,
  ReadStepsRequestSchema,
  SubmitTransactionRequestSchema,
  WorkflowLedgerService,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { submissionText } from '../../clients/submission.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { storeInOldForm } from '../../testing/old-form.ts';
import { contextOf, organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { publish, turn } from '../../testing/turns.ts';
import { addWorkflowLedgerService, workflowHandlers } from './rpc.ts';

const [asker, clerk] = [testKey(2), testKey(3)];
const instanceId = '6f3a2c10-0000-4000-8000-000000000001';
const service = contextOf('service-blueprint', ['registers:write']);
const invalid = { kind: 'invalid', code: 'INVALID_REQUEST' };

describe('the ledger for workflows', () => {
  let register: TestRegister;
  let registerId: string;
  let ledger: ReturnType<typeof workflowHandlers>;
  /** the publication, then steps */
  const sealed: string[] = [];

  async function seal(...transactions: ReturnType<typeof transaction>[]): Promise<void> {
    const bundle = buildDocket(await register.state(registerId), transactions, register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
  }
  const plain = (n: number) => transaction({ registerId, payload: { plain: n } });

  beforeAll(async () => {
    register = await startTestRegister('workflows');
    registerId = await register.createRegister();
    ledger = workflowHandlers({ ...register.ledger.deps.transactions, ...register.ledger.deps.proofs });
    const pin = await publish(register, registerId, turnsDefinition(clerk.walletAddress));
    await register.seal(registerId);
    sealed.push(pin);
    const base = { pin, instanceId, askerAddress: asker.walletAddress };
    const first = turn(registerId, { ...base, seq: 0, key: asker, previous: pin });
    const second = turn(registerId, { ...base, seq: 1, key: clerk, previous: first.txId });
    const third = turn(registerId, { ...base, seq: 2, key: asker, previous: second.txId });
    await seal(plain(1), first, plain(2));
    await seal(plain(3));
    await seal(...Array.from({ length: 12 }, (_, n) => plain(10 + n)), second, third);
    sealed.push(first.txId, second.txId, third.txId);
  });
  afterAll(() => register.stop());

  const read = (request: { from?: { docket: bigint; index: number }; limit?: number }) =>
    ledger.readSteps(create(ReadStepsRequestSchema, { registerId, ...request }), service);
  const idOf = (record: Uint8Array): string => JSON.parse(Buffer.from(record).toString()).txId;

  it('reads publications and steps in ledger order, and no other transaction', async () => {
    const { steps = [], next, height } = await read({});
    expect(steps.map(({ record = new Uint8Array() }) => idOf(record))).toEqual(sealed);
    expect(steps.map(({ position }) => [position?.docket, position?.index])).toEqual([
      [1n, 0],
      [2n, 1],
      [4n, 12],
      [4n, 13],
    ]);
    const [publication, ...others] = steps;
    expect(JSON.parse(Buffer.from(publication?.publicationPayload ?? []).toString()).definition.id).toBe(
      TURNS_ID,
    );
    for (const one of others) expect(one.publicationPayload).toHaveLength(0);
    expect(new Set(steps.map((one) => one.sealedAt)).size).toBe(3);
    expect([next, height]).toMatchObject([{ docket: 5n, index: 0 }, 5n]);
  });

  it('reads every step once, whatever the size of the pages', async () => {
    for (const limit of [1, 2, 3, 4]) {
      const ids: string[] = [];
      let from: { docket: bigint; index: number } | undefined;
      for (let pages = 0; pages < 6; pages += 1) {
        const { steps = [], next } = await read({ limit, ...(from !== undefined && { from }) });
        ids.push(...steps.map(({ record = new Uint8Array() }) => idOf(record)));
        from = { docket: next?.docket ?? 0n, index: next?.index ?? 0 };
      }
      expect([limit, ids, from]).toEqual([limit, sealed, { docket: 5n, index: 0 }]);
    }
  });

  it('visits no plain transaction', async () => {
    await register.database.pool.query('set enable_seqscan = off');
    const { rows } = await register.database.pool.query(
      `explain select docket_number from transaction_ids where is_step and register_no = 1
        and (docket_number, position) >= (0::bigint, 0::bigint) order by docket_number, position limit 10`,
    );
    expect(JSON.stringify(rows)).toContain('transaction_ids_steps');
  });

  it('keeps the position of a reader that is ahead of the register', async () => {
    const from = { docket: 90n, index: 4 };
    expect(await read({ from })).toMatchObject({ steps: [], next: from, height: 5n });
  });

  it('reads a publication whose docket has no value', async () => {
    const other = await register.createRegister('Older');
    const pin = await publish(register, other, turnsDefinition(clerk.walletAddress));
    await register.seal(other);
    const { registerNo } = await register.state(other);
    await register.call('GET', `/api/registers/${other}/transactions?senderAddress=${asker.walletAddress}`, {
      token: 'admin',
    });
    await storeInOldForm(register.database.pool, registerNo, 1);
    const request = create(ReadStepsRequestSchema, { registerId: other });
    const { steps = [] } = await ledger.readSteps(request, service);
    expect(steps.map(({ record = new Uint8Array() }) => idOf(record))).toEqual([pin]);
    expect(steps[0]?.publicationPayload?.length).toBeGreaterThan(100);
    const payloads = create(GetPayloadsRequestSchema, { registerId: other, transactionIds: [pin] });
    expect((await ledger.getPayloads(payloads, service)).payloads).toHaveLength(1);
  });

  it('reads payloads by id in the order of the request', async () => {
    const unknown = 'e'.repeat(64);
    const transactionIds = [sealed[2] ?? '', unknown, 'x', sealed[1]?.toUpperCase() ?? ''];
    const request = create(GetPayloadsRequestSchema, { registerId, transactionIds });
    const { payloads = [], complete } = await ledger.getPayloads(request, service);
    expect(
      payloads.map((one) => [one.transactionId, JSON.parse(Buffer.from(one.payload ?? []).toString())]),
    ).toEqual([
      [sealed[2], { n: 1, instance: instanceId }],
      [sealed[1], { n: 0, instance: instanceId }],
    ]);
    expect(complete).toBe(true);
    const many = create(GetPayloadsRequestSchema, { registerId, transactionIds: Array(65).fill(unknown) });
    await expect(ledger.getPayloads(many, service)).rejects.toMatchObject(invalid);
  });

  it('ends an answer before it exceeds 8 MiB', async () => {
    const id = await register.createRegister('Large');
    const bodies = Array.from({ length: 40 }, (_, n) => ({ n, text: 'x'.repeat(240_000) }));
    const ids: string[] = [];
    for (let at = 0; at < bodies.length; at += 2) {
      const some = bodies.slice(at, at + 2).map((payload) => transaction({ registerId: id, payload }));
      const bundle = buildDocket(await register.state(id), some, register.members);
      expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
      ids.push(...some.map((one) => one.txId));
    }
    const readAll = (transactionIds: string[]) =>
      ledger.getPayloads(create(GetPayloadsRequestSchema, { registerId: id, transactionIds }), service);
    const first = await readAll(ids);
    const count = first.payloads?.length ?? 0;
    expect([count, first.complete]).toEqual([34, false]);
    const rest = await readAll(ids.slice(count));
    expect([rest.payloads?.length, rest.complete]).toEqual([6, true]);
  });

  it('lists publications after a position, of one blueprint or of all', async () => {
    const list = (request: object) =>
      ledger.listPublications(create(ListPublicationsRequestSchema, { registerId, ...request }), service);
    const { publications = [], complete, next } = await list({});
    expect(publications).toMatchObject([
      {
        publicationTxId: sealed[0],
        blueprintId: TURNS_ID,
        ordinal: 1,
        position: { docket: 1n, index: 0 },
        publishedBy: 'did:platform:w:someone',
      },
    ]);
    expect(publications[0]?.execDefHash).toMatch(/^[0-9a-f]{64}$/);
    expect(complete).toBe(true);
    expect(await list({ after: next })).toMatchObject({ publications: [], complete: true, next });
    expect((await list({ blueprintId: 'another' })).publications).toEqual([]);
    await publish(register, registerId, turnsDefinition(clerk.walletAddress, 'Second'));
    await publish(register, registerId, turnsDefinition(clerk.walletAddress, 'Third'));
    await register.seal(registerId);
    const page = await list({ blueprintId: TURNS_ID, limit: 2 });
    expect([page.publications?.map((one) => one.ordinal), page.complete]).toEqual([[1, 2], false]);
    const more = await list({ blueprintId: TURNS_ID, limit: 2, after: page.next });
    expect([more.publications?.map((one) => one.ordinal), more.complete]).toEqual([[3], true]);
    await expect(list({ limit: 201 })).rejects.toMatchObject(invalid);
    await expect(list({ blueprintId: '\0' })).rejects.toMatchObject(invalid);
  });

  it('lists registers by id with their facts, and says which validators lack pins', async () => {
    const sandbox = await register.createRegister('Sandbox', {
      devMode: true,
      metadata: { sandbox: 'true' },
    });
    const list = (request: object) =>
      ledger.listRegisters(create(ListRegistersRequestSchema, request), service);
    const all = await list({});
    const ids = (all.registers ?? []).map((one) => one.registerId ?? '');
    expect(ids).toEqual(ids.toSorted());
    expect(ids).toContain(registerId);
    const page = await list({ limit: 1 });
    expect([page.registers?.length, page.complete]).toEqual([1, false]);
    expect((await list({ after: ids.at(-1) ?? '' })).registers).toEqual([]);
    await expect(list({ after: 'x' })).rejects.toMatchObject(invalid);
    const get = (id: string) =>
      ledger.getRegister(create(GetRegisterRequestSchema, { registerId: id }), service);
    expect(await get(sandbox)).toMatchObject({ name: 'Sandbox', devMode: true, sandbox: true });
    const height = BigInt((await register.state(registerId)).height);
    expect(await get(registerId)).toMatchObject({
      status: 'Online',
      height,
      devMode: false,
      sandbox: false,
      tenantId: organizationId,
      maxTransactionBytes: 524_288n,
      validatorsLackingPins: ['validator-0'],
    });
    await register.database.pool.query(`update validator_directory set features = '{other,bp-pin-v1}'`);
    expect((await get(registerId)).validatorsLackingPins).toEqual([]);
    await register.database.pool.query(`delete from validator_directory`);
    expect((await get(registerId)).validatorsLackingPins).toEqual(['validator-0']);
    for (const member of register.members) await register.introduce(member);
    await expect(get('f'.repeat(32))).rejects.toMatchObject({
      kind: 'not_found',
      code: 'REGISTER_NOT_FOUND',
    });
    await register.database.pool.query('update registers set deleted_at = now() where register_id = $1', [
      sandbox,
    ]);
    expect((await list({})).registers?.map((one) => one.registerId)).not.toContain(sandbox);
  });

  describe('submission', () => {
    const ready = (payload: object, id = registerId) => {
      const one = transaction({ registerId: id, key: asker, payload });
      const record = JSON.parse(Buffer.from(one.record).toString());
      const text = submissionText({
        envelope: record,
        txId: one.txId,
        signatures: record.signatures,
        payloadText: Buffer.from(one.payload).toString(),
      });
      return { txId: one.txId, text };
    };
    const submit = (text: string, id = registerId) =>
      ledger.submitTransaction(
        create(SubmitTransactionRequestSchema, { registerId: id, transaction: Buffer.from(text) }),
        service,
      );

    it('passes on what is signed, and the answer of the validator', async () => {
      const { txId, text } = ready({ sent: 1 });
      const answer = await submit(text);
      expect([answer.status, JSON.parse(Buffer.from(answer.body ?? []).toString())]).toEqual([
        200,
        { isValid: true, added: true },
      ]);
      expect(register.validators.pooled(registerId).map((one) => one.txId)).toContain(txId);
      register.validators.refuseNext({ status: 422, body: { code: 'VAL_BP_003' }, retryAfterSeconds: 7 });
      const refused = await submit(text);
      expect(refused).toMatchObject({ status: 422, retryAfterSeconds: 7 });
      expect(JSON.parse(Buffer.from(refused.body ?? []).toString())).toEqual({ code: 'VAL_BP_003' });
      await register.seal(registerId);
    });

    it('refuses what names another register or none, and what is no JSON or too large', async () => {
      const other = ready({ sent: 2 }, 'a'.repeat(32));
      const named = { kind: 'invalid', code: 'VAL_STRUCT_003' };
      await expect(submit(other.text)).rejects.toMatchObject(named);
      await expect(submit('{}')).rejects.toMatchObject(named);
      const both = `${ready({ sent: 3 }).text.slice(0, -1)},"registerId":"${'a'.repeat(32)}"}`;
      await expect(submit(both)).rejects.toMatchObject(named);
      await expect(submit('no JSON')).rejects.toMatchObject({ kind: 'invalid' });
      const large = ready({ text: 'x'.repeat(1_100_000) });
      await expect(submit(large.text)).rejects.toMatchObject({ code: 'TRANSACTION_TOO_LARGE' });
      expect(register.validators.pooled(registerId)).toEqual([]);
    });

    it('refuses unknown and halted registers, and says that no validator answers', async () => {
      const id = 'f'.repeat(32);
      await expect(submit(ready({}, id).text, id)).rejects.toMatchObject({ code: 'REGISTER_NOT_FOUND' });
      register.validators.down = true;
      await expect(submit(ready({ sent: 4 }).text)).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'VALIDATOR_UNAVAILABLE',
      });
      register.validators.down = false;
      const set = (status: string) =>
        register.database.pool.query('update registers set status = $1 where register_id = $2', [
          status,
          registerId,
        ]);
      await set('Halted');
      await expect(submit(ready({ sent: 5 }).text)).rejects.toMatchObject({ code: 'REGISTER_HALTED' });
      await set('Online');
    });
  });

  it('finds the keys for encryption that participants publish', async () => {
    const entry = { walletAddress: asker.walletAddress, publicKey: asker.publicKey, algorithm: 'ED25519' };
    const x25519 = encodeBase64(new Uint8Array(32).fill(9));
    const record = (key: typeof asker, addresses: object[]) =>
      transaction({
        registerId,
        key,
        payload: { participantId: 'p', addresses },
        type: 'Participant',
        metadata: { Type: 'Participant' },
      });
    const find = async (...addresses: string[]) =>
      (
        await ledger.findParticipantKeys(
          create(FindParticipantKeysRequestSchema, { registerId, addresses }),
          service,
        )
      ).keys;
    expect(await find(asker.walletAddress)).toEqual([]);
    await seal(record(asker, [entry]));
    const known = { address: asker.walletAddress, participantId: 'p', status: 'Active' };
    expect(await find(asker.walletAddress, 'x')).toEqual([{ ...known, algorithm: '', publicKey: '' }]);
    await seal(record(asker, [{ ...entry, encryptionKey: { algorithm: 'X25519', publicKey: x25519 } }]));
    const withKey = [{ ...known, algorithm: 'X25519', publicKey: x25519 }];
    expect(await find(asker.walletAddress)).toEqual(withKey);
    // the key of another holder, and keys of a wrong form, change nothing
    await seal(
      record(clerk, [
        {
          ...entry,
          encryptionKey: { algorithm: 'X25519', publicKey: encodeBase64(new Uint8Array(32).fill(5)) },
        },
      ]),
      record(asker, [
        { ...entry, encryptionKey: { algorithm: 'X25519', publicKey: encodeBase64(new Uint8Array(32)) } },
      ]),
      record(asker, [{ ...entry, encryptionKey: { algorithm: 'ED25519', publicKey: x25519 } }]),
      record(asker, [{ ...entry, encryptionKey: { algorithm: 'NISTP256', publicKey: x25519 } }]),
    );
    expect(await find(asker.walletAddress)).toEqual(withKey);
    const resolved = await register.call(
      'POST',
      `/api/registers/${registerId}/participants/resolve-public-keys`,
      {
        token: 'admin',
        body: { walletAddresses: [asker.walletAddress] },
      },
    );
    expect(resolved.body.resolved[asker.walletAddress]).toMatchObject({
      encryptionKey: { algorithm: 'X25519', publicKey: x25519 },
    });
    expect(await find()).toEqual([]);
    await expect(find(...Array(257).fill('x'))).rejects.toMatchObject(invalid);
  });

  it('serves the blueprint service with the scope registers:write alone', async () => {
    const request = create(ListRegistersRequestSchema, {});
    for (const scopes of [[], ['registers:read']]) {
      await expect(
        ledger.listRegisters(request, contextOf('service-blueprint', scopes)),
      ).rejects.toMatchObject({ kind: 'forbidden' });
    }
    const authority = await memoryAuthority(testInstallation);
    const runtime = testRuntime('service-register');
    const server = createRpcServer({
      runtime,
      workload: await fixedWorkload(authority, 'service-register'),
      host: '127.0.0.1',
      port: 0,
      authenticate: async (token) =>
        ({ ...contextOf(token, ['registers:write']).caller, clientId: token }) as Caller,
    });
    addWorkflowLedgerService(server, {
      ...register.ledger.deps.transactions,
      ...register.ledger.deps.proofs,
    });
    const address = `127.0.0.1:${await server.listen()}`;
    const listAs = async (clientId: string, token?: string) => {
      const client = createRpcClient(WorkflowLedgerService, {
        address,
        workload: await fixedWorkload(authority, clientId),
        expect: `spiffe://${testInstallation}/service/service-register`,
        runtime,
        ...(token !== undefined && { token: async () => token }),
      });
      try {
        return await client.listRegisters({});
      } finally {
        client.close();
      }
    };
    expect((await listAs('service-blueprint', 'service-blueprint')).registers.length).toBeGreaterThan(0);
    await expect(listAs('service-blueprint')).rejects.toMatchObject({ kind: 'unauthenticated' });
    for (const clientId of ['service-wallet', 'service-peer', 'validator-0']) {
      await expect(listAs(clientId, clientId)).rejects.toMatchObject({ kind: 'forbidden' });
    }
    await server.stop();
  });
});
