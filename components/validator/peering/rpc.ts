import { AppError } from '#core/errors/errors.ts';
import type { RpcContext, RpcHandlers, RpcRules } from '#kit/rpc/rpc.ts';
import type { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { Streams } from './inbound-streams.ts';
import { parseCommitQuestion, parseEnvelope, parseRecordsQuestion } from './parse.ts';
import type { Charges } from './peer-score.ts';
import { Questions } from './request-limiter.ts';
import type { Inbox } from './transport.ts';
import { wireCommit } from './wire.ts';

export interface ConsensusRpcOptions {
  readonly inbox: Inbox;
  readonly charges: Pick<Charges, 'charge' | 'isBarred'>;
  /** Another validator has connected and is reachable again. */
  onStream(from: string): void;
}

/** Fits a proposal of the largest docket, or a genesis record. */
const mostRequestBytes = 4 * 1024 * 1024;

/** Whether a client is a validator; its certificate names which one. */
export function isValidator({ clientId }: { readonly clientId: string }): boolean {
  return clientId.startsWith('validator-');
}

/** Authorisation and limits of the service; undecodable requests count against their sender. */
export function consensusRules(charges: Pick<Charges, 'charge'>): RpcRules {
  return {
    allow: isValidator,
    maxRequestBytes: mostRequestBytes,
    onUndecodable: ({ clientId }) => charges.charge(clientId, 'bytes'),
  };
}

/** The RPCs of other validators. The sender is the identity in the connection's certificate. */
export function consensusHandlers(options: ConsensusRpcOptions): RpcHandlers<typeof ConsensusService.method> {
  const { inbox } = options;
  const streams = new Streams();
  const questions = new Questions();
  return {
    async *stream(requests, { peer: { clientId } }) {
      assertHeard(options, clientId);
      const line = streams.open(clientId);
      options.onStream(clientId);
      yield {};
      // The call ends with the stream, with an error, or when newer streams of the same validator replace it.
      await Promise.race([line.isOver, hear(options, clientId, { requests, isOpen: line.isOpen })]).finally(
        line.close,
      );
    },
    async getCommit(request, context) {
      const { registerId, height } = judged(options, context, () => parseCommitQuestion(request));
      return questions.answer(context.peer.clientId, () => {
        const commit = inbox.commit(context.peer.clientId, registerId, height);
        return { answer: wireCommit(commit), sizeBytes: 256 * (1 + (commit?.recordHashes.length ?? 0)) };
      });
    },
    async getRecords(request, context) {
      const { registerId, transactionIds } = judged(options, context, () => parseRecordsQuestion(request));
      return questions.answer(context.peer.clientId, () => {
        const transactions = inbox.records(context.peer.clientId, registerId, transactionIds);
        const bytes = transactions.map(({ record, payload }) => record.length + payload.length);
        const sizeBytes = bytes.reduce((sum, each) => sum + each, 1024);
        return { answer: { transactions: [...transactions] }, sizeBytes };
      });
    },
  };
}

interface Line {
  readonly requests: AsyncIterable<unknown>;
  isOpen(): boolean;
}

async function hear(options: ConsensusRpcOptions, from: string, { requests, isOpen }: Line): Promise<void> {
  for await (const request of requests) {
    if (!isOpen()) return;
    // A banned validator's stream is closed, since dropping its messages would still mean reading them.
    assertHeard(options, from);
    take(options, from, request);
  }
}

/** Throws AppError unavailable VALIDATOR_BARRED for a validator that sent too many faulty messages. */
function assertHeard({ charges }: ConsensusRpcOptions, from: string): void {
  if (!charges.isBarred(from)) return;
  throw new AppError(
    'unavailable',
    'VALIDATOR_BARRED',
    `${from} sent too many faulty messages and is ignored for a while`,
  );
}

function take({ inbox, charges }: ConsensusRpcOptions, from: string, request: unknown): void {
  let envelope: ReturnType<typeof parseEnvelope>;
  try {
    envelope = parseEnvelope(request);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    charges.charge(from, 'envelope');
    return;
  }
  // The validator id of a heartbeat must be that of its sender.
  if (envelope.kind === 'heartbeat' && envelope.validatorId !== from) charges.charge(from, 'envelope');
  else inbox.receive(from, envelope);
}

function judged<T>(options: ConsensusRpcOptions, { peer }: RpcContext, parse: () => T): T {
  assertHeard(options, peer.clientId);
  try {
    return parse();
  } catch (error) {
    options.charges.charge(peer.clientId, 'envelope');
    throw error;
  }
}
