import { createRpcClient, type RpcClientOptions } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import {
  MembershipService,
  SealOutcome,
  SubmissionService,
  type UnsealedTransaction as WireUnsealed,
} from '#protos/gen/chancery/validator/v1/validator_pb.js';
import type { SealResult, UnsealedTransaction, ValidatorAddress, Validators } from '../clients.ts';
import type { PeerOptions } from './wallet.ts';

export interface ValidatorClients extends Validators {
  close(): void;
}

const openSubmissions = (options: RpcClientOptions) => createRpcClient(SubmissionService, options);
const openMembership = (options: RpcClientOptions) => createRpcClient(MembershipService, options);

interface Connection {
  readonly endpoint: string;
  readonly submissions: ReturnType<typeof openSubmissions>;
  readonly membership: ReturnType<typeof openMembership>;
}

/** A question to one of several validators must not wait for a dead one as long as for a busy one. */
const questionTimeoutMs = 3_000;

const statuses = ['pending', 'rejected', 'expired'] as const;

function unsealedOf(wire: WireUnsealed): UnsealedTransaction {
  return {
    txId: wire.transactionId,
    status: statuses.find((status) => status === wire.status) ?? 'pending',
    record: wire.record,
    rejectionCode: wire.rejectionCode,
    rejectionMessage: wire.rejectionMessage,
    atMs: Number(wire.atMs),
  };
}

function sealResultOf(outcome: SealOutcome, docketNumber: bigint): SealResult {
  switch (outcome) {
    case SealOutcome.SEALED:
      return { outcome: 'sealed', docketNumber: Number(docketNumber) };
    case SealOutcome.NO_PENDING_TRANSACTIONS:
      return { outcome: 'nothing_pending' };
    case SealOutcome.QUORUM_UNAVAILABLE:
      return { outcome: 'no_quorum' };
    default:
      return { outcome: 'timeout' };
  }
}

function bodyOf(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? {} : JSON.parse(Buffer.from(bytes).toString('utf8'));
}

/** One connection a validator; an endpoint that moved replaces it. Each must prove the identity it is called by. */
export function connectValidators(options: PeerOptions): ValidatorClients {
  const connections = new Map<string, Connection>();

  function close(connection: Connection): void {
    connection.submissions.close();
    connection.membership.close();
  }

  function at({ validatorId, endpoint }: ValidatorAddress): Connection {
    const open = connections.get(validatorId);
    if (open?.endpoint === endpoint) return open;
    if (open !== undefined) close(open);
    const expect = serviceSpiffeId(options.runtime.installation, validatorId);
    const peer = { address: endpoint, expect, ...options };
    const connection = { endpoint, submissions: openSubmissions(peer), membership: openMembership(peer) };
    connections.set(validatorId, connection);
    return connection;
  }

  const quick = { timeoutMs: questionTimeoutMs };
  return {
    async submit(address, submission) {
      const answer = await at(address).submissions.submit({ submissionJson: submission });
      return {
        status: answer.status,
        body: bodyOf(answer.bodyJson),
        retryAfterSeconds: answer.retryAfterSeconds,
      };
    },
    async find(address, registerId, txIds) {
      const request = { registerId, transactionIds: [...txIds] };
      const answer = await at(address).submissions.findTransactions(request, quick);
      return answer.transactions.map(unsealedOf);
    },
    async listPending(address, registerId, limit) {
      const answer = await at(address).submissions.listPending({ registerId, limit }, quick);
      return { items: answer.transactions.map(unsealedOf), total: answer.total };
    },
    async seal(address, request) {
      const answer = await at(address).submissions.seal(request, { timeoutMs: request.timeoutMs + 2_000 });
      return sealResultOf(answer.outcome, answer.docketNumber);
    },
    async provePossession(address, registerId) {
      const answer = await at(address).membership.provePossession({ registerId }, quick);
      return {
        validatorId: answer.validatorId,
        publicKey: answer.publicKey,
        algorithm: answer.algorithm,
        signature: answer.signature,
      };
    },
    close() {
      for (const connection of connections.values()) close(connection);
      connections.clear();
    },
  };
}
