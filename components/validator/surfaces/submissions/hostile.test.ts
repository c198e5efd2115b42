import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { hostileMessages, spoilText } from '#kit/testing/hostile.ts';
import { createRandom } from '#kit/testing/random.ts';
import {
  CosignRequestSchema,
  FindTransactionsRequestSchema,
  ListPendingRequestSchema,
  ProvePossessionRequestSchema,
  SealRequestSchema,
  SubmitRequestSchema,
} from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { registerId, World } from '../../testing/world.ts';
import { checkpointHandlers } from '../register-api/checkpoint-rpc.ts';
import { membershipHandlers } from '../register-api/possession-rpc.ts';
import { submissionHandlers } from './rpc.ts';

const cases = process.env['CHANCERY_TEST_LENGTH'] === 'full' ? 20_000 : 600;
const random = createRandom(Number(process.env['CHANCERY_TEST_SEED'] ?? 1));

function contextOf(clientId: string): RpcContext {
  const peer = { clientId, spiffeId: `spiffe://test/service/${clientId}` };
  return { peer, signal: new AbortController().signal };
}

function spoiledBytes(text: string): Uint8Array {
  const roll = random.whole(0, 9);
  if (roll === 0) return new Uint8Array();
  return roll === 1 ? random.bytes(300) : Buffer.from(spoilText(random, text));
}

describe('hostile input to the services between validators and the register service', {
  timeout: 240_000,
}, () => {
  const world = new World();
  let handlers: ReturnType<typeof submissionHandlers>;
  const faults: unknown[] = [];
  beforeAll(async () => {
    await world.open();
    await world.begin();
    const { admission, registers } = world.engine;
    handlers = submissionHandlers({
      admission,
      registers,
      onFault: (error) => void faults.push(error),
      nowMs: () => Date.now(),
    });
  });
  afterAll(() => world.remove());

  /** Counts the calls that were answered; any outcome other than an answer or a refusal fails the test. */
  async function storm<D extends DescMessage>(
    schema: D,
    sample: MessageInitShape<D>,
    ask: (message: MessageShape<D>) => Promise<unknown>,
  ): Promise<number> {
    const hostile = hostileMessages(random.fork(schema.typeName), schema, [sample]);
    let answered = 0;
    for (let index = 0; index < cases; index += 1) {
      let message: MessageShape<D>;
      try {
        message = fromBinary(schema, hostile.bytes());
      } catch {
        continue;
      }
      try {
        await ask(message);
        answered += 1;
      } catch (error) {
        if (!isAppError(error) || error.kind === 'internal') throw error;
      }
    }
    return answered;
  }

  test('a corrupted submission is refused, and the next valid one is sealed', async () => {
    const statuses = new Set<number>();
    const before = world.ledger.sealed.size;
    let sent = 0;
    for (let index = 0; index < cases; index += 1) {
      const { text } = index % 5 === 0 ? world.genesis() : world.sign();
      const submissionJson = spoiledBytes(text);
      const request = create(SubmitRequestSchema, { submissionJson, forwarded: random.chance(0.5) });
      const from = random.pick(['validator-1', 'service-register']);
      const { status, bodyJson } = await handlers.submit(request, contextOf(from));
      statuses.add(status ?? 0);
      if (status === 200) sent += 1;
      expect(bodyJson?.length).toBeLessThan(256 * 1024);
    }
    expect([...statuses].filter((status) => status >= 500)).toEqual([]);
    expect(statuses.has(400)).toBe(true);
    expect(faults).toEqual([]);
    expect(world.register.pool.size).toBeLessThanOrEqual(sent);
    await world.submit(world.sign().text);
    await world.sealed(before + 1);
    expect(world.register.status).toBe('Running');
  });

  test('requests of the register service are answered or refused, and other validators may not send them', async () => {
    const { txId } = world.sign();
    const service = contextOf('service-register');
    const found = await storm(
      FindTransactionsRequestSchema,
      { registerId, transactionIds: [txId, txId] },
      (message) => handlers.findTransactions(message, service),
    );
    await storm(ListPendingRequestSchema, { registerId, limit: 10 }, (message) =>
      handlers.listPending(message, service),
    );
    await storm(SealRequestSchema, { registerId, maxTransactions: 1, timeoutMs: 1 }, (message) =>
      handlers.seal(message, service),
    );
    expect(found).toBeGreaterThan(0);
    const refused = expect.objectContaining({ kind: 'forbidden' });
    const other = contextOf('validator-1');
    const query = create(SealRequestSchema, { registerId, timeoutMs: 30_000 });
    await expect(handlers.seal(query, other)).rejects.toEqual(refused);
    const pending = create(ListPendingRequestSchema, { registerId });
    await expect(handlers.listPending(pending, other)).rejects.toEqual(refused);
  });

  test('proofs of possession and cosignatures are given only for requests within bounds', async () => {
    const { signer } = world;
    const service = contextOf('service-register');
    const { key } = signer;
    const chain = { ...signer, newestKey: key, nextKey: async () => key };
    const membership = membershipHandlers({ validatorId: 'validator-0', signer: chain });
    const possession = await storm(ProvePossessionRequestSchema, { registerId }, (message) =>
      membership.provePossession(message, service),
    );
    expect(possession).toBeGreaterThan(0);
    const findLog = (id: string) =>
      id === registerId
        ? { networkId: 'n', signer, rootAt: (size: number) => world.register.rootAt(size) }
        : undefined;
    const checkpoints = checkpointHandlers({ clock: world.runtime.clock, findLog });
    const rootHash = Buffer.from(world.register.rootAt(1) ?? '', 'hex');
    const before = signer.signed.filter(({ kind }) => kind === 'cosignature').length;
    const given = await storm(CosignRequestSchema, { registerId, size: 1n, rootHash }, (message) =>
      checkpoints.cosign(message, service),
    );
    const signed = signer.signed.filter(({ kind }) => kind === 'cosignature').length - before;
    expect(signed).toBe(given);
  });
});
