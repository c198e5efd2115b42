import { sign } from 'node:crypto';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { Cleanup, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createLogger } from '#kit/log/log.ts';
import { createRpcClient, createRpcServer, type RpcClient } from '#kit/rpc/rpc.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import { connectWorkload, serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import type { SealedTransaction } from '#protos/gen/chancery/register/v1/register_pb.js';
import {
  ConsensusService,
  type ProposalMessage,
  type StreamRequest,
} from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { createOutsideKey } from '../harness/outside.ts';
import type { LocalState } from '../harness/system.ts';
import { inParallel, until } from '../harness/wait.ts';
import { Pen, type Said } from './lies.ts';

type Stream = Awaited<ReturnType<RpcClient<typeof ConsensusService.method>['stream']['open']>>;

/** What another validator said to this one. */
export interface Heard {
  readonly from: string;
  readonly registerId: string;
  readonly message: StreamRequest['message'];
}

const heartbeatMs = 500;
const decisionMs = 60_000;

/**
 * A member that no rule of ours binds: it has the identity and the address of a validator whose process has ended, and a
 * key of its own, which is a member of the registers that let it in. It speaks the protocol of validators over the real
 * network, gives records to whoever asks, and votes and proposes nothing but what a test tells it to.
 */
export class LyingMember {
  readonly id: string;
  readonly peers: readonly string[];
  readonly key = createOutsideKey();
  readonly pen: Pen;
  readonly heard: Heard[] = [];
  /** What the others accepted and told this member of, by transaction. */
  readonly records = new Map<string, SealedTransaction>();
  readonly #cleanup = new Cleanup();
  readonly #log = createLogger({ service: 'lying-member', level: 'silent' });
  readonly #lines = new Map<string, Line>();
  /** What is said about each proposal of others, in whatever order they come; nothing at first. */
  answer: (registerId: string, proposal: ProposalMessage) => readonly Said[] = () => [];

  private constructor(id: string, peers: readonly string[]) {
    this.id = id;
    this.peers = peers;
    this.pen = new Pen(id, this.key);
  }

  /** Takes the place of a validator of a local installation; resolves when it is connected to all the others. */
  static async start(state: LocalState, id: string): Promise<LyingMember> {
    const places = new Map(state.validators.map(({ validatorId, grpc }) => [validatorId, grpc]));
    const own = places.get(id);
    if (own === undefined) throw new Error(`${id} is no validator of the installation`);
    places.delete(id);
    const member = new LyingMember(id, [...places.keys()]);
    await member.#open(state, own, places);
    return member;
  }

  async stop(): Promise<void> {
    await this.#cleanup.run(this.#log);
  }

  /** base64: what a registration needs beside the key. */
  provePossession(registerId: string): string {
    const facts = { registerId, validatorId: this.id, publicKey: this.key.publicKey };
    return sign(null, possessionBytes(facts), this.key.privateKey).toString('base64');
  }

  /** Says something to some of the others, in the order of the calls. */
  async say(to: readonly string[], registerId: string, ...messages: readonly Said[]): Promise<void> {
    await Promise.all(
      to.map(async (peer) => {
        for (const message of messages) await this.#lines.get(peer)?.send({ registerId, message });
      }),
    );
  }

  /** Hash of the docket that each of the others decided at a height, as soon as it has. */
  decidedAt(registerId: string, height: number): Promise<string[]> {
    return inParallel(this.peers, this.peers.length, (peer) =>
      until(`${peer} has decided docket ${height}`, decisionMs, async () => {
        const line = this.#lines.get(peer);
        const asked = line?.client.getCommit({ registerId, height: BigInt(height) });
        // it may have been told too many lies lately to answer at once
        return (await asked?.catch(() => undefined))?.header?.hash;
      }),
    );
  }

  async #open(state: LocalState, own: string, places: ReadonlyMap<string, string>): Promise<void> {
    const clock = systemClock();
    const log = this.#log;
    const service = 'lying-member';
    const { installation } = state;
    const runtime = { service, installation, log, clock, telemetry: createTelemetry({ service }) };
    const workload = await connectWorkload({ socket: state.spiffeSockets[this.id] ?? '', log, clock });
    this.#cleanup.add('workload', () => workload.stop());
    await this.#listen(runtime, workload, own);
    for (const [peer, address] of places) {
      const expect = serviceSpiffeId(installation, peer);
      const client = createRpcClient(ConsensusService, { address, workload, expect, runtime });
      this.#cleanup.add(peer, () => client.close());
      const line = new Line(client, await client.stream.open());
      this.#lines.set(peer, line);
      await line.stands();
    }
    const timer = setInterval(() => this.#beat(), heartbeatMs);
    this.#cleanup.add('heartbeats', () => clearInterval(timer));
    this.#cleanup.add('streams', () => {
      for (const line of this.#lines.values()) line.end();
    });
  }

  async #listen(runtime: Runtime, workload: Workload, own: string): Promise<void> {
    const [host = '', port = ''] = own.split(':');
    const server = createRpcServer({ runtime, workload, host, port: Number(port) });
    const isValidator = ({ clientId }: { readonly clientId: string }) => clientId.startsWith('validator-');
    const { records } = this;
    const hear = (from: string, said: StreamRequest) => this.#hear(from, said);
    server.add(
      ConsensusService,
      {
        async *stream(requests, { peer }) {
          yield {};
          for await (const request of requests) hear(peer.clientId, request);
        },
        getCommit: async () => ({}),
        getRecords: async ({ transactionIds }) => ({
          transactions: transactionIds.flatMap((txId) => records.get(encodeHex(txId)) ?? []),
        }),
      },
      { allow: isValidator },
    );
    const unavailable = async () => {
      throw new AppError('unavailable', 'VALIDATOR_UNAVAILABLE', 'This member answers nobody.');
    };
    const submissions = {
      submit: unavailable,
      submitBatches: () => {
        throw new AppError('unavailable', 'VALIDATOR_UNAVAILABLE', 'This member answers nobody.');
      },
      findTransactions: unavailable,
      listPending: unavailable,
      seal: unavailable,
    };
    server.add(SubmissionService, submissions, { allow: () => true });
    await server.listen();
    this.#cleanup.add('server', () => server.stop());
  }

  #hear(from: string, { registerId, message }: StreamRequest): void {
    const heard = { from, registerId, message };
    if (message.case === 'hint') {
      for (const each of message.value.transactions) this.records.set(parseRecord(each.record).txId, each);
    }
    if (message.case !== 'heartbeat') this.heard.push(heard);
    const isOthers = message.case === 'proposal' && message.value.proposal?.validatorId !== this.id;
    if (isOthers) this.#say(this.peers, registerId, this.answer(registerId, message.value));
  }

  /** Whoever is silent is taken for dead, and nobody waits for its proposals. */
  #beat(): void {
    const atMs = BigInt(Date.now());
    const value = { validatorId: this.id, atMs, version: 'lying', heads: [] };
    this.#say(this.peers, '', [{ case: 'heartbeat', value }]);
  }

  /** One that has ended hears nothing. */
  #say(to: readonly string[], registerId: string, messages: readonly Said[]): void {
    this.say(to, registerId, ...messages).catch(() => {});
  }
}

/** A stream to one of the others. */
class Line {
  readonly client: RpcClient<typeof ConsensusService.method>;
  readonly #stream: Stream;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: RpcClient<typeof ConsensusService.method>, stream: Stream) {
    this.client = client;
    this.#stream = stream;
  }

  async stands(): Promise<void> {
    const responses = this.#stream.responses[Symbol.asyncIterator]();
    const first = await responses.next();
    if (first.done === true) throw new Error('a validator refused the stream');
    // Nothing follows; the iteration ends with the stream.
    responses.next().catch(() => {});
  }

  /** One after the other; fails when the stream has ended. */
  send(said: Parameters<Stream['send']>[0]): Promise<unknown> {
    const sent = this.#last.then(() => this.#stream.send(said));
    this.#last = sent.catch(() => {});
    return sent;
  }

  end(): void {
    this.#stream.cancel();
  }
}
