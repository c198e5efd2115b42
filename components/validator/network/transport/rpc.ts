import { AppError } from '#core/errors/errors.ts';
import type { RpcContext, RpcHandlers, RpcRules } from '#kit/rpc/rpc.ts';
import type { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { failure } from '../../errors.ts';
import { InboundStreams } from './inbound-streams.ts';
import { parseCommitRequest, parseEnvelope, parseRecordsRequest } from './parse.ts';
import type { PeerScore } from './peer-score.ts';
import { RequestLimiter } from './request-limiter.ts';
import type { Inbox } from './transport.ts';
import { wireCommit } from './wire.ts';

interface ConsensusRpcOptions {
  readonly inbox: Inbox;
  readonly peerScore: Pick<PeerScore, 'reportFault' | 'isBanned'>;
  /** Another validator has connected and is reachable again. */
  onStream(from: string): void;
}

/** Fits a proposal of the largest docket, or a genesis record. */
const maxRequestBytes = 4 * 1024 * 1024;

/** Whether a client is a validator; its certificate names which one. */
function isValidator({ clientId }: { readonly clientId: string }): boolean {
  return clientId.startsWith('validator-');
}

/** Authorisation and limits of the service; undecodable requests count against their sender. */
export function consensusRules(peerScore: Pick<PeerScore, 'reportFault'>): RpcRules {
  return {
    allow: isValidator,
    maxRequestBytes: maxRequestBytes,
    onUndecodable: ({ clientId }) => peerScore.reportFault(clientId, 'bytes'),
  };
}

/** The RPCs of other validators. The sender is the identity in the connection's certificate. */
export function consensusHandlers(options: ConsensusRpcOptions): RpcHandlers<typeof ConsensusService.method> {
  const { inbox } = options;
  const streams = new InboundStreams();
  const queries = new RequestLimiter();
  return {
    async *stream(requests, { peer: { clientId } }) {
      assertNotBanned(options, clientId);
      const stream = streams.open(clientId);
      options.onStream(clientId);
      yield {};
      // The call ends with the stream, with an error, or when newer streams of the same validator replace it.
      await Promise.race([
        stream.isOver,
        receiveAll(options, clientId, { requests, isOpen: stream.isOpen }),
      ]).finally(stream.close);
    },
    async getCommit(request, context) {
      const { registerId, height } = judged(options, context, () => parseCommitRequest(request));
      return queries.answer(context.peer.clientId, () => {
        const commit = inbox.commit(context.peer.clientId, registerId, height);
        return { answer: wireCommit(commit), sizeBytes: 256 * (1 + (commit?.recordHashes.length ?? 0)) };
      });
    },
    async getRecords(request, context) {
      const { registerId, transactionIds } = judged(options, context, () => parseRecordsRequest(request));
      return queries.answer(context.peer.clientId, () => {
        const transactions = inbox.records(context.peer.clientId, registerId, transactionIds);
        const bytes = transactions.map(({ record, payload }) => record.length + payload.length);
        const sizeBytes = bytes.reduce((sum, each) => sum + each, 1024);
        return { answer: { transactions: [...transactions] }, sizeBytes };
      });
    },
  };
}

interface InboundStream {
  readonly requests: AsyncIterable<unknown>;
  isOpen(): boolean;
}

async function receiveAll(
  options: ConsensusRpcOptions,
  from: string,
  { requests, isOpen }: InboundStream,
): Promise<void> {
  for await (const request of requests) {
    if (!isOpen()) return;
    // A banned validator's stream is closed, since dropping its messages would still mean reading them.
    assertNotBanned(options, from);
    take(options, from, request);
  }
}

/** Throws AppError unavailable VALIDATOR_BARRED for a validator that sent too many faulty messages. */
function assertNotBanned({ peerScore }: ConsensusRpcOptions, from: string): void {
  if (!peerScore.isBanned(from)) return;
  throw failure('VALIDATOR_BARRED', {
    message: `${from} sent too many faulty messages and is ignored for a while`,
  });
}

function take({ inbox, peerScore }: ConsensusRpcOptions, from: string, request: unknown): void {
  let envelope: ReturnType<typeof parseEnvelope>;
  try {
    envelope = parseEnvelope(request);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    peerScore.reportFault(from, 'envelope');
    return;
  }
  // The validator id of a heartbeat must be that of its sender.
  if (envelope.kind === 'heartbeat' && envelope.validatorId !== from) peerScore.reportFault(from, 'envelope');
  else inbox.receive(from, envelope);
}

function judged<T>(options: ConsensusRpcOptions, { peer }: RpcContext, parse: () => T): T {
  assertNotBanned(options, peer.clientId);
  try {
    return parse();
  } catch (error) {
    options.peerScore.reportFault(peer.clientId, 'envelope');
    throw error;
  }
}
