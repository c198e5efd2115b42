import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { type Hostile, hostileMessages } from '#kit/testing/hostile.ts';
import { createRandom } from '#kit/testing/random.ts';
import {
  AnnounceRequestSchema,
  AppendAttestationRequestSchema,
  CheckSubscriptionRequestSchema,
  GetRegisterStateRequestSchema,
  ListSubscriptionsRequestSchema,
  LookupRequestSchema,
  ReadKeysRequestSchema,
  WriteDocketRequestSchema,
  WriteOutcome,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { directoryHandlers } from '../../registers/directory/rpc.ts';
import { buildDocket, buildVote } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { contextOf, organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { wireDocket, wireVote } from '../../testing/wire-docket.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import { ledgerHandlers } from './rpc.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const cases = full ? 5_000 : 250;
const seed = Number(process.env['CHANCERY_TEST_SEED'] ?? 1);

describe('hostile input from a validator', {
  timeout: full ? 600_000 : 60_000,
}, () => {
  let register: TestRegister;
  let registerId: string;
  let ledger: ReturnType<typeof ledgerHandlers>;
  let next: DocketBundle;
  const validator = contextOf('validator-0');
  const random = createRandom(seed);

  beforeAll(async () => {
    register = await startTestRegister('hostile', { members: 4 });
    registerId = await register.createRegister();
    const { database, verifier, runtime } = register;
    const { writeDocket, segments } = register.ledger;
    ledger = ledgerHandlers({ database, verifier, clock: runtime.clock, writeDocket, segments });
  });
  afterAll(() => register.stop());

  const build = async (n: number): Promise<DocketBundle> => {
    const sealed = [
      transaction({ registerId, payload: { n } }),
      transaction({ registerId, payload: { n, two: 2 } }),
    ];
    return buildDocket(await register.state(registerId), sealed, register.members);
  };

  /** Collects refusal codes and answers; any failure other than a refusal with a reason fails the test. */
  async function storm<D extends DescMessage>(
    schema: D,
    samples: readonly MessageInitShape<D>[],
    ask: (message: MessageShape<D>) => Promise<unknown>,
  ): Promise<{ codes: Set<string>; answered: number }> {
    const hostile: Hostile = hostileMessages(random.fork(schema.typeName), schema, samples);
    const codes = new Set<string>();
    let answered = 0;
    for (let index = 0; index < cases; index += 1) {
      const bytes = hostile.bytes();
      let message: MessageShape<D>;
      try {
        message = fromBinary(schema, bytes);
      } catch {
        continue;
      }
      try {
        await ask(message);
        answered += 1;
      } catch (error) {
        if (!isAppError(error) || error.kind === 'internal') {
          throw new Error(
            `case ${index}: ${JSON.stringify(message, (_, each) => (typeof each === 'bigint' ? String(each) : each)).slice(0, 2_000)}`,
            { cause: error },
          );
        }
        codes.add(error.code);
      }
    }
    return { codes, answered };
  }

  test('a docket with a fault anywhere is refused whole, and the valid one is stored afterwards', async () => {
    next = await build(1);
    const [sealed] = (await register.state(registerId)).head === undefined ? [] : [next];
    const samples = [wireDocket(next), wireDocket(sealed ?? next)];
    const outcomes = new Map<number, number>();
    await storm(WriteDocketRequestSchema, samples, async (message) => {
      const before = (await register.state(registerId)).height;
      const { outcome = WriteOutcome.UNSPECIFIED } = await ledger.writeDocket(message, validator);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (outcome !== WriteOutcome.STORED) expect((await register.state(registerId)).height).toBe(before);
    });
    expect(outcomes.get(WriteOutcome.INVALID)).toBeGreaterThan(cases / 10);
    const { height, status } = await register.state(registerId);
    expect(status).toBe('Online');
    if (height === next.header.docketNumber) {
      expect(
        await ledger.writeDocket(create(WriteDocketRequestSchema, wireDocket(next)), validator),
      ).toMatchObject({
        outcome: WriteOutcome.STORED,
      });
    }
    const after = await build(2);
    expect(
      await ledger.writeDocket(create(WriteDocketRequestSchema, wireDocket(after)), validator),
    ).toMatchObject({
      outcome: WriteOutcome.STORED,
    });
  });

  test('requests and announcements of any shape are answered or refused, without an internal error', async () => {
    const txId = next.header.transactionIds[0] ?? '';
    const item = { registerId, transactionId: txId, previousTransactionId: txId, replayKey: 'ab'.repeat(16) };
    const lookups = await storm(LookupRequestSchema, [{ items: [item, item] }], (message) =>
      ledger.lookup(message, validator),
    );
    expect(lookups.answered).toBeGreaterThan(0);
    await storm(GetRegisterStateRequestSchema, [{ registerId }], (message) =>
      ledger.getRegisterState(message, validator),
    );
    await storm(ReadKeysRequestSchema, [{ registerId }], async (message) => {
      const parts: string[] = [];
      for await (const { part } of ledger.readKeys(message, validator)) parts.push(part?.case ?? '');
      expect(parts.at(-1)).toBe('end');
    });
    await storm(CheckSubscriptionRequestSchema, [{ registerId, organizationId }], (message) =>
      ledger.checkSubscription(message, validator),
    );
    await storm(ListSubscriptionsRequestSchema, [{ registerIds: [registerId], organizationId }], (message) =>
      ledger.listSubscriptions(message, validator),
    );
    const vote = buildVote(next.header, register.members[2] ?? { validatorId: '', key: testKey(1) });
    await storm(
      AppendAttestationRequestSchema,
      [{ registerId, docketNumber: 1n, attestation: wireVote(vote) }],
      (message) => ledger.appendAttestation(message, validator),
    );
    const { database, runtime } = register;
    const directory = directoryHandlers({ database, clock: runtime.clock, onAnnounced: () => {} });
    const { publicKey } = testKey(77);
    const announcement = {
      validatorId: 'validator-7',
      publicKey,
      algorithm: 'ED25519',
      endpoint: '127.0.0.1:5000',
      version: '1',
    };
    await storm(AnnounceRequestSchema, [announcement], (message) =>
      directory.announce(message, contextOf('validator-7')),
    );
    const { validators = [] } = await directory.listValidators({} as never, validator);
    const own = validators.filter(({ validatorId }) => validatorId === 'validator-7');
    expect(
      JSON.stringify(own, (_, each) => (typeof each === 'bigint' ? String(each) : each)).length,
    ).toBeLessThan(1_000);
  });

  test('an attestation that the database cannot hold does not prevent the docket from being stored', async () => {
    const bundle = await build(3);
    const [member] = register.members;
    if (member === undefined) throw new Error('the set is empty');
    const honest = buildVote(bundle.header, member);
    for (const timestamp of ['\u0000', '2026\u0000', 'yesterday', '']) {
      const facts = { ...honest, timestamp };
      const signature = member.key.signer.sign(voteBytes(facts));
      const attestations = [{ ...wireVote(honest), timestamp, signature }];
      const request = create(WriteDocketRequestSchema, { ...wireDocket(bundle), attestations });
      expect(await ledger.writeDocket(request, validator)).toMatchObject({ outcome: WriteOutcome.INVALID });
    }
    const request = create(WriteDocketRequestSchema, wireDocket(bundle));
    expect(await ledger.writeDocket(request, validator)).toMatchObject({ outcome: WriteOutcome.STORED });
  });
});
