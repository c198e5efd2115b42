import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { parseRules } from '#core/ledger/governance/rules-json.ts';
import { Frontier } from '#core/ledger/merkle.ts';
import { recordLeaf } from '#core/ledger/record.ts';
import {
  AnnounceRequestSchema,
  AppendAttestationRequestSchema,
  GetRegisterStateRequestSchema,
  ListMemberRegistersRequestSchema,
  ListSubscriptionsRequestSchema,
  LookupRequestSchema,
  WriteDocketRequestSchema,
  WriteOutcome,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { directoryHandlers } from '../../registers/directory/rpc.ts';
import { buildVote } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { contextOf, organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { wireDocket } from '../../testing/wire-docket.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import { ledgerHandlers } from './rpc.ts';

const owner = testKey(1);

const requestOf = (docket: DocketBundle) => create(WriteDocketRequestSchema, wireDocket(docket));

describe('gRPC of the ledger', () => {
  let register: TestRegister;
  let registerId: string;
  let ledger: ReturnType<typeof ledgerHandlers>;
  const validator = contextOf('validator-0');

  beforeAll(async () => {
    register = await startTestRegister('rpc', { members: 4 });
    registerId = await register.createRegister();
    const { database } = register;
    const { writeDocket, segments } = register.ledger;
    const { clock } = register.runtime;
    ledger = ledgerHandlers({
      database,
      clock,
      writeDocket,
      segments,
      verifier: createVerifier(nodeEd25519()),
    });
  });
  afterAll(() => register.stop());

  async function submit(payload: unknown, extra: object = {}) {
    const body = {
      senderAddress: owner.walletAddress,
      payload: encodeBase64(canonicalBytes(payload)),
      ...extra,
    };
    const sent = await register.call('POST', `/api/registers/${registerId}/transactions`, {
      token: 'admin',
      body,
    });
    return String(sent.body.transactionId);
  }

  it('stores a docket and answers a repetition', async () => {
    await submit(1);
    const request = requestOf(await register.propose(registerId));
    const stored = await ledger.writeDocket(request, validator);
    expect(stored).toMatchObject({ outcome: WriteOutcome.STORED, height: 2n, refusals: [] });
    const again = await ledger.writeDocket(request, validator);
    expect(again).toMatchObject({ outcome: WriteOutcome.REPLAYED, height: 2n });
  });

  it('reports the violations of a docket, and accepts none without the scope', async () => {
    await submit(2);
    const bundle = await register.propose(registerId);
    const broken = { ...bundle, header: { ...bundle.header, merkleRoot: '0'.repeat(64) } };
    const refused = await ledger.writeDocket(requestOf(broken), validator);
    expect(refused).toMatchObject({ outcome: WriteOutcome.INVALID, refusals: [{ code: 'MERKLE_MISMATCH' }] });
    const early = { ...bundle, header: { ...bundle.header, docketNumber: 50 } };
    expect(await ledger.writeDocket(requestOf(early), validator)).toMatchObject({
      outcome: WriteOutcome.OUT_OF_ORDER,
    });
    const other = contextOf('validator-0', []);
    await expect(ledger.writeDocket(requestOf(bundle), other)).rejects.toMatchObject({ kind: 'forbidden' });
    expect(await ledger.writeDocket(requestOf(bundle), validator)).toMatchObject({
      outcome: WriteOutcome.STORED,
    });
  });

  it('answers a lookup for a whole batch, in its order', async () => {
    const parent = await submit(3);
    await register.seal(registerId);
    const child = await submit(4, { previousTransactionId: parent });
    const { header, transactions } = await register.seal(registerId);
    const unknown = 'e'.repeat(64);
    const item = (transactionId: string, previousTransactionId = '', id = registerId) => ({
      registerId: id,
      transactionId,
      previousTransactionId,
    });
    const items = [
      item(unknown, parent),
      item(child),
      item(unknown, unknown),
      item(child, '', 'f'.repeat(32)),
    ];
    const { answers } = await ledger.lookup(create(LookupRequestSchema, { items }), validator);
    const [leaf] = transactions.map((one) => encodeHex(recordLeaf(one.record)));
    expect(answers).toMatchObject([
      { sealedRecordHash: '', previousKnown: true, previousType: 'Action', previousSuccessor: child },
      { sealedRecordHash: leaf, sealedDocketNumber: BigInt(header.docketNumber), previousKnown: false },
      { sealedRecordHash: '', previousKnown: false, previousSuccessor: '' },
      { sealedRecordHash: '' },
    ]);
    expect((await ledger.lookup(create(LookupRequestSchema, {}), validator)).answers).toEqual([]);
  });

  it('returns the state of a register to a validator', async () => {
    const state = await ledger.getRegisterState(
      create(GetRegisterStateRequestSchema, { registerId }),
      validator,
    );
    expect(state).toMatchObject({ found: true, status: 'Online', networkId: register.runtime.installation });
    const { rules } = await register.state(registerId);
    expect(parseRules(JSON.parse(state.rulesJson ?? ''))).toEqual(rules);
    expect(state.validators?.map((member) => member.validatorId)).toEqual(
      register.members.map((member) => member.validatorId),
    );
    const docket = (
      await register.call('GET', `/api/registers/${registerId}/dockets/latest`, { token: 'admin' })
    ).body;
    expect([state.headHash, state.headTimestamp]).toEqual([docket.hash, docket.timestamp]);
    const root = Frontier.parse(
      Number(state.height),
      (state.logFrontier ?? []).map((hash) => hash),
    ).root();
    expect(encodeHex(root)).toBe(docket.logRoot);
    const missing = create(GetRegisterStateRequestSchema, { registerId: 'a'.repeat(32) });
    expect(await ledger.getRegisterState(missing, validator)).toMatchObject({ found: false });
    const list = create(ListMemberRegistersRequestSchema);
    expect((await ledger.listMemberRegisters(list, validator)).registerIds).toEqual([registerId]);
    expect((await ledger.listMemberRegisters(list, contextOf('validator-9'))).registerIds).toEqual([]);
  });

  it('stores later attestations, of members only', async () => {
    const docket = (await register.call('GET', `/api/registers/${registerId}/dockets/1`, { token: 'admin' }))
      .body;
    const vote = buildVote({ ...docket, registerId }, register.members[2] ?? { validatorId: '', key: owner });
    const append = (change: object) =>
      ledger.appendAttestation(
        create(AppendAttestationRequestSchema, {
          registerId,
          docketNumber: 1n,
          attestation: { ...vote, reason: '', signature: decodeHex(vote.signature), ...change },
        }),
        validator,
      );
    await append({});
    await append({});
    const votes = (await register.call('GET', `/api/registers/${registerId}/dockets/1`, { token: 'admin' }))
      .body.consensusVotes;
    expect(votes.map((one: { validatorId: string }) => one.validatorId).toSorted()).toEqual([
      'validator-0',
      'validator-2',
    ]);
    const borrowed = { validatorId: 'validator-1' };
    await expect(append(borrowed)).rejects.toMatchObject({ code: 'VAL_SIG_002' });
    await expect(append({ approved: false })).rejects.toMatchObject({ code: 'VAL_SIG_002' });
    const [rejecting = { validatorId: '', key: owner }] = register.members;
    const rejection = buildVote({ ...docket, registerId }, rejecting, false);
    await expect(append({ ...rejection, signature: decodeHex(rejection.signature) })).rejects.toMatchObject({
      code: 'VAL_SIG_002',
    });
    const stranger = buildVote({ ...docket, registerId }, { validatorId: 'validator-2', key: owner });
    await expect(append({ ...stranger, signature: decodeHex(stranger.signature) })).rejects.toMatchObject({
      code: 'VAL_SIG_002',
    });
  });

  it('lists which of several registers an organisation subscribes to', async () => {
    const deleted = await register.createRegister();
    const list = async (registerIds: string[], organization = organizationId) => {
      const request = create(ListSubscriptionsRequestSchema, { organizationId: organization, registerIds });
      return (await ledger.listSubscriptions(request, validator)).registerIds?.toSorted();
    };
    expect(await list([registerId, deleted])).toEqual([registerId, deleted].toSorted());
    await register.call('DELETE', `/api/registers/${deleted}`, { token: 'admin' });
    expect(await list([registerId, deleted, 'f'.repeat(32), 'nonsense', '\u0000'])).toEqual([registerId]);
    expect(await list([registerId], 'another')).toEqual([]);
    expect(await list([registerId], '\u0000')).toEqual([]);
    await expect(list(Array.from({ length: 10_001 }, () => registerId))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });

  it('lets validators announce themselves, and no other caller in their name', async () => {
    const { database, runtime } = register;
    let announced = 0;
    const handlers = directoryHandlers({
      database,
      clock: runtime.clock,
      onAnnounced: () => {
        announced += 1;
      },
    });
    const { publicKey, walletAddress } = testKey(77);
    const request = (change: object = {}) =>
      create(AnnounceRequestSchema, {
        validatorId: 'validator-7',
        publicKey,
        algorithm: 'ED25519',
        endpoint: '127.0.0.1:5000',
        version: '1',
        ...change,
      });
    const peer = contextOf('validator-7');
    expect(await handlers.announce(request(), peer)).toEqual({ walletAddress });
    expect(await handlers.announce(request({ endpoint: '127.0.0.1:5001' }), peer)).toEqual({ walletAddress });
    expect(announced).toBe(2);
    await expect(handlers.announce(request(), contextOf('validator-8'))).rejects.toMatchObject({
      kind: 'forbidden',
    });
    const changed = request({ publicKey: testKey(78).publicKey });
    await expect(handlers.announce(changed, peer)).rejects.toMatchObject({ code: 'VALIDATOR_KEY_CHANGED' });
    await expect(handlers.announce(request({ endpoint: 'nowhere' }), peer)).rejects.toMatchObject({
      kind: 'invalid',
    });
    await expect(handlers.announce(request({ publicKey: 'AAAA' }), peer)).rejects.toMatchObject({
      kind: 'invalid',
    });
  });
});
