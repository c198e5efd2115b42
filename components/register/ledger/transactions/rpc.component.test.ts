import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import type { Caller } from '#core/identity/claims.ts';
import { createRpcClient, createRpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import {
  GetSealedTransactionRequestSchema,
  RecordService,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { testKey } from '../../testing/keys.ts';
import { contextOf, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { addRecordService, recordHandlers } from './rpc.ts';

let register: TestRegister;
let registerId: string;
let records: ReturnType<typeof recordHandlers>;

beforeAll(async () => {
  register = await startTestRegister('records');
  registerId = await register.createRegister();
  records = recordHandlers({ db: register.database.read, segments: register.ledger.segments });
});
afterAll(() => register.stop());

async function submit(payload: unknown): Promise<string> {
  const body = {
    senderAddress: testKey(1).walletAddress,
    payload: encodeBase64(canonicalBytes(payload)),
  };
  const sent = await register.call('POST', `/api/registers/${registerId}/transactions`, {
    token: 'admin',
    body,
  });
  return String(sent.body.transactionId);
}

function get(transactionId: string, id = registerId) {
  const request = create(GetSealedTransactionRequestSchema, { registerId: id, transactionId });
  return records.getSealedTransaction(request, contextOf('service-wallet'));
}

it('gives the exact bytes of a sealed transaction', async () => {
  const txId = await submit({ n: 1 });
  await expect(get(txId)).rejects.toMatchObject({ kind: 'not_found', code: 'TX_NOT_FOUND' });
  const { transactions } = await register.seal(registerId);
  const { transaction } = await get(txId.toUpperCase());
  expect(Buffer.from(transaction?.record ?? [])).toEqual(Buffer.from(transactions[0]?.record ?? []));
  expect(Buffer.from(transaction?.payload ?? [])).toEqual(Buffer.from(canonicalBytes({ n: 1 })));
  expect(transaction?.payloadHashForm).toBe('jcs');
});

it('refuses unknown and malformed ids', async () => {
  for (const [id, of, code] of [
    ['e'.repeat(64), registerId, 'TX_NOT_FOUND'],
    ['x', registerId, 'TX_NOT_FOUND'],
    ['\0', registerId, 'TX_NOT_FOUND'],
    ['e'.repeat(64), 'f'.repeat(32), 'REGISTER_NOT_FOUND'],
    ['e'.repeat(64), '\0', 'REGISTER_NOT_FOUND'],
  ] as const) {
    await expect(get(id, of)).rejects.toMatchObject({ kind: 'not_found', code });
  }
});

it('serves the wallet and blueprint services and validators with their own tokens, and no other service', async () => {
  const authority = await memoryAuthority(testInstallation);
  const runtime = testRuntime('service-register');
  const server = createRpcServer({
    runtime,
    workload: await fixedWorkload(authority, 'service-register'),
    host: '127.0.0.1',
    port: 0,
    authenticate: async (token) => ({ ...contextOf(token).caller, clientId: token }) as Caller,
  });
  addRecordService(server, { db: register.database.read, segments: register.ledger.segments });
  const address = `127.0.0.1:${await server.listen()}`;
  const read = async (clientId: string, token?: string) => {
    const workload = await fixedWorkload(authority, clientId);
    const name = `spiffe://${testInstallation}/service/service-register`;
    const client = createRpcClient(RecordService, {
      address,
      workload,
      expect: name,
      runtime,
      ...(token !== undefined && { token: async () => token }),
    });
    try {
      return await client.getSealedTransaction({ registerId, transactionId: 'e'.repeat(64) });
    } finally {
      client.close();
    }
  };
  for (const clientId of ['service-wallet', 'service-blueprint', 'validator-0']) {
    await expect(read(clientId, clientId)).rejects.toMatchObject({ code: 'TX_NOT_FOUND' });
  }
  await expect(read('service-wallet')).rejects.toMatchObject({ kind: 'unauthenticated' });
  await expect(read('service-wallet', 'service-blueprint')).rejects.toMatchObject({
    kind: 'unauthenticated',
  });
  for (const clientId of ['service-credential', 'service-gateway', 'service-peer']) {
    await expect(read(clientId, clientId)).rejects.toMatchObject({ kind: 'forbidden' });
  }
  await server.stop();
});
