import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { turnsDefinition } from '#core/blueprint/testing/turns.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { parseCheckpoint, parseVerifierKey, verifyCheckpoint } from '#core/ledger/checkpoint.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { nodeHash } from '#core/ledger/merkle.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import { ProveTransactionRequestSchema } from '#protos/gen/chancery/register/v1/register_pb.js';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { contextOf, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { publish, turn } from '../../testing/turns.ts';
import { workflowHandlers } from './rpc.ts';

const [asker, clerk] = [testKey(2), testKey(3)];
const service = contextOf('service-blueprint', ['registers:write']);

let register: TestRegister;
let registerId: string;
/** The publication and a step. */
const sealed: string[] = [];

beforeAll(async () => {
  register = await startTestRegister('workflow_proofs');
  registerId = await register.createRegister();
  const pin = await publish(register, registerId, turnsDefinition(clerk.walletAddress));
  await register.seal(registerId);
  const instanceId = '6f3a2c10-0000-4000-8000-000000000001';
  const base = { pin, instanceId, askerAddress: asker.walletAddress };
  const first = turn(registerId, { ...base, seq: 0, key: asker, previous: pin });
  const plain = (n: number) => transaction({ registerId, payload: { plain: n } });
  for (const some of [[plain(1), first, plain(2)], [plain(3)], [plain(4)]]) {
    const bundle = buildDocket(await register.state(registerId), some, register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
  }
  sealed.push(pin, first.txId);
});
afterAll(() => register.stop());

function prove(transactionId: string, id = registerId, context = service) {
  const ledger = workflowHandlers({ ...register.ledger.deps.transactions, ...register.ledger.deps.proofs });
  return ledger.proveTransaction(
    create(ProveTransactionRequestSchema, { registerId: id, transactionId }),
    context,
  );
}

type Path = Awaited<ReturnType<typeof prove>>['log'];

function climb(leaf: Uint8Array, path: Path = []): Uint8Array {
  return path.reduce((below, { hash = new Uint8Array(), left }) => {
    return left === true ? nodeHash(hash, below) : nodeHash(below, hash);
  }, leaf);
}

it('proves that a transaction is sealed, under a checkpoint of its register', async () => {
  const verifier = createVerifier(nodeEd25519());
  for (const txId of sealed) {
    const proof = await prove(txId);
    const record = proof.transaction?.record ?? new Uint8Array();
    expect(parseRecord(record).txId).toBe(txId);
    const { docketNumber, hash = '', merkleRoot = '' } = proof.docket ?? {};
    const { timestamp = '', validatorSetHash = '' } = proof.docket ?? {};
    expect(encodeHex(climb(recordLeaf(record), proof.inclusion))).toBe(merkleRoot);
    const docket = { docketNumber: Number(docketNumber), hash, merkleRoot, timestamp, validatorSetHash };
    const leaf = logLeaf({ registerId, ...docket });
    const note = parseCheckpoint(proof.checkpoint ?? '');
    expect(note.size).toBe(5);
    expect(encodeHex(climb(leaf, proof.log))).toBe(encodeHex(note.rootHash));
    expect(verifyCheckpoint(verifier, note, parseVerifierKey(proof.checkpointKey ?? ''))).toBe(true);
  }
});

it('proves nothing that is not sealed, and to no other caller', async () => {
  await expect(prove('e'.repeat(64))).rejects.toMatchObject({ code: 'TX_NOT_FOUND' });
  await expect(prove('x')).rejects.toMatchObject({ code: 'TX_NOT_FOUND' });
  const [pin = ''] = sealed;
  await expect(prove(pin, 'f'.repeat(32))).rejects.toMatchObject({ code: 'REGISTER_NOT_FOUND' });
  const other = contextOf('service-blueprint', ['registers:read']);
  await expect(prove(pin, registerId, other)).rejects.toMatchObject({ kind: 'forbidden' });
});
