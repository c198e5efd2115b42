import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { parseRecord, recordBytes } from '#core/ledger/record.ts';
import { assembleLedger } from '../../ledger.ts';
import { buildCertificate, buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister, testSettings } from '../../testing/register.ts';
import { bodyOf, transaction } from '../../testing/sealed.ts';
import type { DocketBundle, SealedTransaction } from '../dockets/docket.ts';

describe('writing dockets', () => {
  let register: TestRegister;
  let registerId: string;
  let count = 0;
  beforeAll(async () => {
    register = await startTestRegister('write', { members: 4 });
    registerId = await register.createRegister();
  });
  afterAll(() => register.stop());

  const post = (bundle: DocketBundle, token: string | undefined = 'validator') =>
    register.call('POST', `/api/registers/${registerId}/dockets`, { token, body: bodyOf(bundle) });

  function next() {
    count += 1;
    return transaction({ registerId, payload: { n: count } });
  }

  const docket = async (...transactions: SealedTransaction[]) =>
    buildDocket(await register.state(registerId), transactions, register.members);

  const height = async () => (await register.state(registerId)).height;

  async function refused(bundle: DocketBundle, code: string) {
    const before = await height();
    const answer = await post(bundle);
    expect([answer.status, answer.body.code]).toEqual([422, code]);
    expect(await height()).toBe(before);
  }

  it('is allowed for validators only', async () => {
    const bundle = await docket(next());
    const anonymous = await register.call('POST', `/api/registers/${registerId}/dockets`, {
      body: bodyOf(bundle),
    });
    expect(anonymous.status).toBe(401);
    expect((await post(bundle, 'admin')).status).toBe(403);
    expect((await post(bundle, 'blueprint')).status).toBe(403);
  });

  it('stores a docket, answers a repetition, and refuses another docket under the same number or out of order', async () => {
    const bundle = await docket(next(), next());
    expect((await post(bundle)).status).toBe(201);
    expect((await post(bundle)).status).toBe(200);
    const { header } = bundle;
    const fewer = { networkId: register.runtime.installation, round: 3, members: register.members };
    const laterRound = buildCertificate(header, register.members.slice(1), fewer);
    expect((await post({ ...bundle, certificate: laterRound })).status).toBe(200);
    const other = await docket(next());
    const sameNumber = { ...other, header: { ...other.header, docketNumber: header.docketNumber } };
    const divergent = await post(sameNumber);
    expect([divergent.status, divergent.body.code]).toEqual([409, 'DOCKET_DIVERGENCE']);
    const ahead = { ...other, header: { ...other.header, docketNumber: header.docketNumber + 2 } };
    const early = await post(ahead);
    expect([early.status, early.body.code]).toEqual([409, 'DOCKET_OUT_OF_ORDER']);
    expect(early.body.expected).toBe(header.docketNumber + 1);
  });

  it('refuses a replay without a valid certificate', async () => {
    const bundle = await docket(next());
    expect((await post(bundle)).status).toBe(201);
    const signatures = bundle.certificate.signatures.slice(1);
    await refused({ ...bundle, certificate: { ...bundle.certificate, signatures } }, 'VAL_CERT_003');
  });

  it('refuses a corrupted Merkle root', async () => {
    const bundle = await docket(next());
    const merkleRoot = `${bundle.header.merkleRoot.slice(0, -1)}${bundle.header.merkleRoot.endsWith('0') ? '1' : '0'}`;
    await refused({ ...bundle, header: { ...bundle.header, merkleRoot } }, 'MERKLE_MISMATCH');
  });

  it('refuses one vote fewer than the quorum, and a quorum with votes of two rounds', async () => {
    const bundle = await docket(next());
    const { members } = register;
    const needed = quorum(members.length);
    const { networkId } = await register.state(registerId);
    const few = buildCertificate(bundle.header, members.slice(0, needed - 1), {
      networkId,
      round: 0,
      members,
    });
    await refused({ ...bundle, certificate: few }, 'VAL_CERT_003');
    const late = buildCertificate(bundle.header, members.slice(needed - 1, needed), {
      networkId,
      round: 1,
      members,
    });
    const mixed = { ...few, signatures: [...few.signatures, ...late.signatures] };
    await refused({ ...bundle, certificate: mixed }, 'VAL_CERT_002');
    const doubled = { ...few, signatures: [...few.signatures, ...few.signatures.slice(-1)] };
    await refused({ ...bundle, certificate: doubled }, 'VAL_CERT_002');
    expect((await post(bundle)).status).toBe(201);
  });

  it('refuses dockets that contradict the head, the header or the records', async () => {
    const bundle = await docket(next(), next());
    const { header, transactions } = bundle;
    const zeros = '0'.repeat(64);
    await refused({ ...bundle, header: { ...header, previousHash: zeros } }, 'PREVIOUS_HASH_MISMATCH');
    await refused({ ...bundle, header: { ...header, hash: zeros } }, 'HASH_MISMATCH');
    await refused({ ...bundle, header: { ...header, logRoot: zeros } }, 'MERKLE_MISMATCH');
    await refused({ ...bundle, header: { ...header, validatorSetHash: zeros } }, 'MERKLE_MISMATCH');
    const old = '2020-01-01T00:00:00.0000000+00:00';
    await refused({ ...bundle, header: { ...header, timestamp: old } }, 'TIMESTAMP_NOT_AFTER_PREVIOUS');
    await refused({ ...bundle, transactions: transactions.slice(1) }, 'VAL_STRUCT_001');
    await refused({ ...bundle, transactions: transactions.toReversed() }, 'VAL_STRUCT_002');
    await refused({ ...bundle, header: { ...header, sizeBytes: header.sizeBytes + 1 } }, 'HASH_MISMATCH');
  });

  it('accepts attestations of members only, one per member', async () => {
    const bundle = await docket(next());
    const [vote] = bundle.attestations;
    if (vote === undefined) throw new Error('the certificate has no votes');
    await refused({ ...bundle, attestations: [vote, vote] }, 'VAL_SIG_002');
    await refused({ ...bundle, attestations: [{ ...vote, validatorId: 'validator-2' }] }, 'VAL_SIG_002');
    await refused({ ...bundle, attestations: [{ ...vote, reason: 'VAL_SIZE_001' }] }, 'VAL_SIG_002');
    expect((await post(bundle)).status).toBe(201);
  });

  it('refuses records that differ from the signed content', async () => {
    const good = next();
    const record = parseRecord(good.record);
    const sealed = async (change: object, payload = good.payload) =>
      docket({ ...good, payload, record: recordBytes({ ...record, ...change }) });
    await refused(await sealed({}, canonicalBytes({ other: 1 })), 'VAL_HASH_001');
    await refused(await sealed({ bound: false }), 'VAL_STRUCT_011');
    await refused(await sealed({ metadata: { a: 'b' } }), 'VAL_STRUCT_011');
    await refused(await sealed({ senderAddress: testKey(9).walletAddress }), 'VAL_SIG_003');
    const [signature] = record.signatures;
    const forged = { ...signature, signatureValue: encodeBase64(new Uint8Array(64)) };
    await refused(await sealed({ signatures: [forged] }), 'VAL_SIG_002');
    const foreign = transaction({ registerId: 'f'.repeat(32), payload: { n: 0 } });
    await refused(await docket(foreign), 'VAL_STRUCT_003');
    const expired = transaction({
      registerId,
      payload: { n: 0 },
      expiresAt: '2021-01-01T00:00:00.0000000+00:00',
    });
    await refused(await docket(expired), 'VAL_TIME_003');
    const stranger = transaction({ registerId, payload: { n: 0 }, type: 'Control', key: testKey(9) });
    await refused(await docket(stranger), 'VAL_PERM_001');
  });

  it('seals a transaction once, and one successor of an Action', async () => {
    const first = next();
    expect((await post(await docket(first))).status).toBe(201);
    await refused(await docket(first), 'VAL_CHAIN_004');
    await refused(
      await docket(transaction({ registerId, payload: 1, previousTransactionId: 'e'.repeat(64) })),
      'VAL_CHAIN_001',
    );
    const child = (n: number) =>
      transaction({ registerId, payload: { n }, previousTransactionId: first.txId });
    await refused(await docket(child(1), child(2)), 'VAL_CHAIN_FORK');
    expect((await post(await docket(child(3)))).status).toBe(201);
    await refused(await docket(child(4)), 'VAL_CHAIN_FORK');
    const parent = next();
    const inside = transaction({ registerId, payload: 5, previousTransactionId: parent.txId });
    await refused(await docket(inside, parent), 'VAL_CHAIN_001');
    expect((await post(await docket(parent, inside))).status).toBe(201);
  });

  it('allows many successors of a control transaction', async () => {
    const genesis = (await register.call('GET', `/api/registers/${registerId}`, { token: 'admin' })).body;
    const previousTransactionId = genesis.genesisTransactionId;
    const child = (n: number) => transaction({ registerId, payload: { n }, previousTransactionId });
    expect((await post(await docket(child(1), child(2)))).status).toBe(201);
    expect((await post(await docket(child(3)))).status).toBe(201);
  });

  it('seals texts that columns cannot hold', async () => {
    const strange = transaction({
      registerId,
      payload: 1,
      blueprintId: 'a\u0000b',
      metadata: { x: '\u0000' },
    });
    expect((await post(await docket(strange))).status).toBe(201);
    const path = `/api/registers/${registerId}/transactions/${strange.txId}`;
    const read = await register.call('GET', path, { token: 'admin' });
    expect(read.body).toMatchObject({ blueprintId: 'a\u0000b', metadata: { x: '\u0000' } });
  });

  it('enforces the limits of the policy on dockets', async () => {
    const { database, state } = register;
    const { registerNo, rules } = await state(registerId);
    if (rules === undefined) throw new Error('no rules');
    const { consensus } = rules.policy;
    const tight = { ...consensus, maxTransactionsPerDocket: 2, maxTransactionBytes: 600 };
    const change = 'update register_rules set rules = $1 where register_no = $2';
    const withPolicy = { ...rules, policy: { ...rules.policy, consensus: tight } };
    await database.pool.query(change, [JSON.stringify(withPolicy), registerNo]);
    const strict = assembleLedger({
      ...register,
      verifier: createVerifier(nodeEd25519()),
      bus: { publish: () => undefined },
      settings: testSettings,
    });
    const tooMany = await strict.writeDocket(await docket(next(), next(), next()));
    const large = transaction({ registerId, payload: 1, metadata: { text: 'x'.repeat(600) } });
    const tooLarge = await strict.writeDocket(await docket(large));
    await strict.stop();
    await database.pool.query(change, [JSON.stringify(rules), registerNo]);
    for (const result of [tooMany, tooLarge]) {
      expect(result).toMatchObject({ outcome: 'invalid', violations: [{ code: 'VAL_SIZE_001' }] });
    }
  });

  it('answers 404 for an unknown register and 400 for a body that is not a docket', async () => {
    const bundle = await docket(next());
    const unknown = await register.call('POST', `/api/registers/${'a'.repeat(32)}/dockets`, {
      token: 'validator',
      body: bodyOf(bundle),
    });
    expect(unknown.status).toBe(404);
    for (const body of [{}, { ...bodyOf(bundle), hash: 'x' }, { ...bodyOf(bundle), docketNumber: -1 }]) {
      const answer = await register.call('POST', `/api/registers/${registerId}/dockets`, {
        token: 'validator',
        body,
      });
      expect(answer.status).toBe(400);
    }
  });
});
