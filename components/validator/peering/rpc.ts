import { AppError } from '#core/errors/errors.ts';
import type { RpcContext, RpcHandlers } from '#kit/rpc/rpc.ts';
import type { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { parseCommitQuestion, parseEnvelope, parseRecordsQuestion } from './parse.ts';
import type { Inbox } from './transport.ts';
import { wireCommit } from './wire.ts';

export interface ConsensusRpcOptions {
  readonly inbox: Inbox;
  /** Another validator sent what is no message at all. */
  onFault(from: string): void;
  /** Another validator has connected: it can be reached again. */
  onStream(from: string): void;
}

/** Whether a client may speak as a validator at all; for which one its certificate says. */
export function isValidator({ clientId }: { readonly clientId: string }): boolean {
  return clientId.startsWith('validator-');
}

/** What other validators say and ask. The sender is who the connection's certificate names. */
export function consensusHandlers(options: ConsensusRpcOptions): RpcHandlers<typeof ConsensusService.method> {
  const { inbox } = options;
  return {
    async *stream(requests, { peer: { clientId } }) {
      options.onStream(clientId);
      yield {};
      for await (const request of requests) take(options, clientId, request);
    },
    async getCommit(request, context) {
      const { registerId, height } = judged(options, context, () => parseCommitQuestion(request));
      return wireCommit(inbox.commit(context.peer.clientId, registerId, height));
    },
    async getRecords(request, context) {
      const { registerId, transactionIds } = judged(options, context, () => parseRecordsQuestion(request));
      const transactions = inbox.records(context.peer.clientId, registerId, transactionIds);
      return { transactions: [...transactions] };
    },
  };
}

function take({ inbox, onFault }: ConsensusRpcOptions, from: string, request: unknown): void {
  let envelope: ReturnType<typeof parseEnvelope>;
  try {
    envelope = parseEnvelope(request);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    onFault(from);
    return;
  }
  // A heartbeat says who it is of; that is nobody but its sender.
  if (envelope.kind === 'heartbeat' && envelope.validatorId !== from) onFault(from);
  else inbox.receive(from, envelope);
}

function judged<T>(options: ConsensusRpcOptions, { peer }: RpcContext, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    options.onFault(peer.clientId);
    throw error;
  }
}
