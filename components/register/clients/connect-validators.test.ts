import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { HistoryService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { connectValidators, type ValidatorClients } from './connect-validators.ts';
import type { ValidatorAddress } from './validators.ts';

const registerId = '0123456789abcdef0123456789abcdef';
const hash = 'ab'.repeat(32);
const ended: string[] = [];
let server: RpcServer;
let clients: ValidatorClients;
let at: ValidatorAddress;

/** One docket as a validator streams it. */
function docket(docketNumber: bigint) {
  const roots = { merkleRoot: hash, logRoot: hash, validatorSetHash: hash };
  return {
    header: {
      registerId,
      docketNumber,
      previousHash: hash,
      timestamp: '2026-11-22T12:00:00.0000000+00:00',
      validatorAddress: 'w1',
      transactionIds: [hash],
      hash,
      ...roots,
      sizeBytes: 2n,
    },
    certificate: { version: 1, height: docketNumber, docketHash: hash, ...roots },
    transactions: [{ record: Buffer.from('{}'), payload: Buffer.from('{}'), payloadHashForm: 'jcs' }],
  };
}

beforeAll(async () => {
  const authority = await memoryAuthority(testInstallation);
  const runtime = testRuntime('validator');
  const workload = await fixedWorkload(authority, 'validator-0');
  server = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
  server.add(
    HistoryService,
    {
      listHeights: async () => ({ registers: [{ registerId, height: 7n }] }),
      async *readDockets({ from }, { signal }) {
        try {
          for (let number = from; !signal.aborted; number += 1n) yield docket(number);
        } finally {
          ended.push(`from ${from}`);
        }
      },
    },
    { allow: ({ clientId }) => clientId === 'service-register' },
  );
  const port = await server.listen();
  at = { validatorId: 'validator-0', endpoint: `127.0.0.1:${port}` };
  clients = connectValidators({
    runtime: testRuntime('register'),
    workload: await fixedWorkload(authority, 'service-register'),
    token: async () => 'token',
  });
});
afterAll(async () => {
  clients.close();
  await server.stop();
});

describe('the log of a validator', () => {
  it('reports the heights that it knew of this service', async () => {
    expect(await clients.heights(at)).toEqual(new Map([[registerId, 7]]));
  });

  it('streams dockets in order until the reader stops', async () => {
    const range = { registerId, from: 3, signal: new AbortController().signal };
    const numbers: number[] = [];
    for await (const { header, certificate, transactions } of clients.readDockets(at, range)) {
      expect(certificate.height).toBe(header.docketNumber);
      expect(transactions).toHaveLength(1);
      numbers.push(header.docketNumber);
      if (numbers.length === 5) break;
    }
    expect(numbers).toEqual([3, 4, 5, 6, 7]);
    await waitFor(() => ended.includes('from 3'));
  });

  it('ends when the caller aborts', async () => {
    const ending = new AbortController();
    const dockets = clients.readDockets(at, { registerId, from: 100, signal: ending.signal });
    const iterator = dockets[Symbol.asyncIterator]();
    expect((await iterator.next()).value.header.docketNumber).toBe(100);
    ending.abort();
    await expect(
      (async () => {
        for (;;) if ((await iterator.next()).done === true) return;
      })(),
    ).rejects.toThrow();
    await waitFor(() => ended.includes('from 100'));
  });
});
