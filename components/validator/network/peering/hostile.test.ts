import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { create, type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { isAppError } from '#core/errors/errors.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { type Clock, systemClock } from '#kit/clock/clock.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { type Hostile, hostileMessages } from '#kit/testing/hostile.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  GetCommitRequestSchema,
  GetCommitResponseSchema,
  GetRecordsRequestSchema,
  GetRecordsResponseSchema,
  type StreamRequest,
  StreamRequestSchema,
} from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import type { Message } from '../../chain/consensus/messages.ts';
import { signable } from '../../chain/sealing/sign-bytes.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { testKey } from '../../testing/keys.ts';
import { registerId } from '../../testing/world.ts';
import { parseCommit, parseEnvelope, parseRecords } from '../transport/parse.ts';
import { consensusHandlers } from '../transport/rpc.ts';
import type { Envelope, Transport } from '../transport/transport.ts';
import { wireCommit, wireEnvelope } from '../transport/wire.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const batches = full ? 400 : 16;
const batchSize = 40;
const seed = Number(process.env['CHANCERY_TEST_SEED'] ?? 1);
const retainedMib = 24;
/** A fault window ends in this time; then its validator is no longer ignored. */
const windowMs = 10_000;

const clusters: Cluster[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

/** A clock that can be advanced for all members at once. */
function movable(): Clock & { early(ms: number): void } {
  const real = systemClock();
  let aheadMs = 0;
  return {
    nowMs: () => real.nowMs() + aheadMs,
    nowMicros: () => real.nowMicros() + BigInt(aheadMs) * 1_000n,
    early: (ms) => {
      aheadMs += ms;
    },
  };
}

function heapMib(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed / 1024 / 1024;
}

function contextOf(clientId: string): RpcContext {
  const peer = { clientId, spiffeId: `spiffe://test/service/${clientId}` };
  return { peer, signal: new AbortController().signal };
}

/** The message as the server decodes it; undefined for undecodable bytes. */
function decoded<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> | undefined {
  try {
    return fromBinary(schema, bytes);
  } catch {
    return undefined;
  }
}

/** Envelopes exchanged by real members, a few of each kind, and evidence made of them. */
function samplesOf(heard: readonly Envelope[]): Envelope[] {
  const kinds = new Map<string, Envelope[]>();
  for (const envelope of heard) {
    const name = envelope.kind === 'vote' ? envelope.vote.kind : envelope.kind;
    const known = kinds.get(name) ?? [];
    kinds.set(name, known);
    if (known.length < 6) known.push(envelope);
  }
  const found = [...kinds.values()].flat();
  const votes = heard.flatMap((each) => (each.kind === 'vote' ? each.vote : []));
  const [first, second] = votes;
  if (first !== undefined && second !== undefined) {
    found.push({ kind: 'evidence', registerId, evidence: { kind: 'duplicate-vote', first, second } });
  }
  return found;
}

/** A member that sends arbitrary messages under its own id and key. */
class Liar {
  readonly #random: Random;
  readonly #said: Hostile;
  readonly #key = testKey(23);
  readonly id: string;

  constructor(id: string, random: Random, samples: readonly Envelope[]) {
    this.id = id;
    this.#random = random;
    this.#said = hostileMessages(random, StreamRequestSchema, samples.map(wireEnvelope));
  }

  /** The message as a member receives it; undefined for undecodable bytes. */
  next(to: Member): StreamRequest | undefined {
    const message = decoded(StreamRequestSchema, this.#said.bytes());
    return message !== undefined && this.#random.chance(0.4) ? this.#signed(to, message) : message;
  }

  /** The forged message with a valid signature and the current height, where it has those fields. */
  #signed(to: Member, message: StreamRequest): StreamRequest {
    try {
      return create(StreamRequestSchema, wireEnvelope(this.#sign(to, parseEnvelope(message))));
    } catch (error) {
      // Malformed envelopes, and messages that cannot be signed, are sent unchanged.
      if (isAppError(error, 'invalid')) return message;
      throw error;
    }
  }

  #sign(to: Member, envelope: Envelope): Envelope {
    const { state } = to.register;
    const own = { validatorId: this.id, height: state.height + this.#random.whole(0, 1) };
    const isForged = this.#random.chance(0.2);
    const sign = (said: Message, timestamp: string) =>
      isForged ? said.signature : encodeBase64(this.#key.sign(signBytes(signable(state, said, timestamp))));
    if (envelope.kind === 'vote') {
      const vote = { ...envelope.vote, ...own };
      return { kind: 'vote', registerId, vote: { ...vote, signature: sign(vote, vote.timestamp) } };
    }
    if (envelope.kind !== 'proposal') return envelope;
    const proposal = { ...envelope.proposal, ...own };
    const lie = { ...proposal, signature: sign(proposal, proposal.value.timestamp) };
    const header = { ...envelope.header, docketNumber: own.height };
    return { ...envelope, registerId, header, proposal: lie };
  }
}

/** Corrupts one member's answers to the other members, behind the production encoder. */
class HostileAnswers {
  readonly #random: Random;
  readonly #liar: string;
  isOn = false;
  asked = 0;

  constructor(random: Random, equivocator: string) {
    this.#random = random;
    this.#liar = equivocator;
  }

  over(wire: Transport): Transport {
    return {
      send: (to, envelope) => wire.send(to, envelope),
      fetchRecords: async (to, ...query) => {
        const transactions = await wire.fetchRecords(to, ...query);
        if (!this.isOn || to !== this.#liar) return transactions;
        return parseRecords(this.#spoiled(GetRecordsResponseSchema, { transactions: [...transactions] }));
      },
      fetchCommit: async (to, ...query) => {
        const bundle = await wire.fetchCommit(to, ...query);
        if (!this.isOn || to !== this.#liar) return bundle;
        return parseCommit(this.#spoiled(GetCommitResponseSchema, wireCommit(bundle)));
      },
    };
  }

  #spoiled<D extends DescMessage>(schema: D, answer: Parameters<typeof hostileMessages<D>>[2][number]) {
    this.asked += 1;
    const bytes = hostileMessages(this.#random, schema, [answer]).bytes();
    return decoded(schema, bytes) ?? create(schema);
  }
}

/** Four members whose messages are recorded; the answers of the last one can be corrupted. */
async function openStage() {
  const clock = movable();
  const random = createRandom(seed);
  const cluster = new Cluster(4, clock);
  clusters.push(cluster);
  const answers = new HostileAnswers(random.fork('answers'), 'validator-3');
  cluster.transportOf = (member) => answers.over(cluster.network.transport(member.id));
  const heard: Envelope[] = [];
  cluster.network.tamper = (_from, _to, envelope) => {
    if (heard.length < 2_000) heard.push(envelope);
    return envelope;
  };
  await cluster.open();
  await cluster.begin();
  for (let index = 0; index < 8; index += 1) {
    await cluster.submit(cluster.member(index % 4), { payload: { before: index } });
  }
  await cluster.sealed(9);
  await cluster.agreed();
  await waitFor(() => new Set(heard.map(({ kind }) => kind)).size >= 6, { what: 'messages of each kind' });
  const honest = cluster.members.slice(0, 3);
  const charged = new Map<string, Set<string>>();
  for (const { engine } of honest) {
    const { peerScore } = engine.peering;
    const reportFault = peerScore.reportFault.bind(peerScore);
    vi.spyOn(peerScore, 'reportFault').mockImplementation((validatorId, reason) => {
      charged.set(validatorId, (charged.get(validatorId) ?? new Set()).add(reason));
      reportFault(validatorId, reason);
    });
  }
  return { clock, random, cluster, honest, answers, charged, samples: samplesOf(heard) };
}

type Stage = Awaited<ReturnType<typeof openStage>>;

/** A stream of forged messages to one member, as the service receives it; it ends early when the member closes it. */
async function speak(to: Member, from: string, next: () => StreamRequest | undefined): Promise<void> {
  const { peerScore } = to.engine.peering;
  const handlers = consensusHandlers({ inbox: to.engine.peering, peerScore, onStream: () => {} });
  async function* requests() {
    for (let index = 0; index < batchSize; index += 1) {
      const message = next();
      if (message === undefined) peerScore.reportFault(from, 'bytes');
      else yield message;
    }
  }
  try {
    for await (const _acknowledgement of handlers.stream(requests(), contextOf(from))) await setImmediate();
  } catch (error) {
    if (!isAppError(error) || error.code !== 'VALIDATOR_BARRED') throw error;
  }
}

async function storm(stage: Stage, from: string, next: (to: Member) => StreamRequest | undefined) {
  const { honest, clock, cluster } = stage;
  const before = cluster.ledger.sealed.size;
  let halfway = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    for (const to of honest) await speak(to, from, () => next(to));
    const taker = honest[batch % honest.length];
    if (taker !== undefined && batch % 8 === 0) await cluster.submit(taker, { payload: { batch, from } });
    clock.early(windowMs);
    if (batch === Math.floor(batches / 2)) halfway = heapMib();
  }
  const grown = heapMib() - halfway;
  return { submitted: before + Math.ceil(batches / 8), grown };
}

function expectBounded({ honest }: Stage): void {
  for (const { engine, register } of honest) {
    expect(register.status).toBe('Running');
    expect(register.machine.rounds.size).toBeLessThanOrEqual(2 * 16 * 4);
    expect(register.machine.early.length).toBeLessThanOrEqual(8 * 4);
    expect(engine.peering.evidence(register.id).length).toBeLessThanOrEqual(64);
    expect(engine.peering.evidence(register.id).flatMap(({ validatorIds }) => validatorIds)).toEqual(
      engine.peering.evidence(register.id).map(() => 'validator-3'),
    );
  }
}

describe('hostile input from another validator', { timeout: full ? 900_000 : 90_000 }, () => {
  test('a member that sends anything is penalised, convicts no other member, and the others continue sealing', async () => {
    const stage = await openStage();
    const { cluster, honest, charged, random, samples, answers } = stage;
    answers.isOn = true;
    const equivocator = new Liar('validator-3', random.fork('liar'), samples);
    const { submitted, grown } = await storm(stage, equivocator.id, (to) => equivocator.next(to));
    await cluster.submit(cluster.member(0), { payload: { after: 1 } });
    await cluster.sealed(submitted + 1, 60_000);
    expect([...charged.keys()]).toEqual(['validator-3']);
    const reasons = [...(charged.get('validator-3') ?? [])];
    expect(reasons).toEqual(expect.arrayContaining(['bytes', 'envelope', 'signature', 'proposal']));
    expectBounded(stage);
    expect(grown).toBeLessThan(retainedMib);
    const heads = honest.map(({ register }) => register.state.networkId);
    expect(new Set(heads).size).toBe(1);
  });

  test('a validator outside all local registers stores nothing here and stops nothing', async () => {
    const stage = await openStage();
    const { cluster, charged, random, samples } = stage;
    const stranger = new Liar('validator-99', random.fork('stranger'), samples);
    const { submitted, grown } = await storm(stage, stranger.id, (to) => {
      const message = stranger.next(to);
      const isElsewhere = message !== undefined && random.chance(0.5);
      return isElsewhere
        ? {
            ...message,
            registerId: random
              .whole(0, 2 ** 31)
              .toString(16)
              .padStart(32, 'a'),
          }
        : message;
    });
    await cluster.submit(cluster.member(1), { payload: { after: 1 } });
    await cluster.sealed(submitted + 1, 60_000);
    expect([...charged.keys()]).toEqual(['validator-99']);
    expectBounded(stage);
    expect(grown).toBeLessThan(retainedMib);
  });

  test('requests of any shape are answered within bounds or refused, and count against their sender', async () => {
    const { honest, charged, random, cluster, clock } = await openStage();
    const [to] = honest;
    if (to === undefined) throw new Error('no member is there');
    const ids = cluster.ledger.dockets.flatMap(({ docket }) => docket.header.transactionIds);
    const transactionIds = ids.map((txId) => Buffer.from(txId, 'hex'));
    const commits = hostileMessages(random, GetCommitRequestSchema, [{ registerId, height: 1n }]);
    const records = hostileMessages(random, GetRecordsRequestSchema, [{ registerId, transactionIds }]);
    const { peerScore } = to.engine.peering;
    const handlers = consensusHandlers({ inbox: to.engine.peering, peerScore, onStream: () => {} });
    const context = contextOf('validator-3');
    const cases = full ? 20_000 : 1_500;
    let answered = 0;
    const codes = new Set<string>();
    const ask = async (query: () => Promise<unknown> | undefined) => {
      try {
        if ((await query()) !== undefined) answered += 1;
      } catch (error) {
        if (!isAppError(error)) throw error;
        codes.add(error.code);
      }
    };
    for (let index = 0; index < cases; index += 1) {
      if (index % 20 === 0) clock.early(windowMs);
      const commit = decoded(GetCommitRequestSchema, commits.bytes());
      const asked = decoded(GetRecordsRequestSchema, records.bytes());
      await ask(() => commit && handlers.getCommit(commit, context));
      await ask(() => asked && handlers.getRecords(asked, context));
    }
    expect(answered).toBeGreaterThan(0);
    expect([...codes].filter((code) => !['VALIDATOR_BARRED', 'TOO_MANY_QUESTIONS'].includes(code))).toEqual([
      'INVALID_ENVELOPE',
    ]);
    expect([...charged.keys()]).toEqual(['validator-3']);
  });
});
