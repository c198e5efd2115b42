import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import { createRpcClient, type RpcClientOptions } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import {
  type RegisterValidation,
  ValidatorAdminService,
} from '#protos/gen/chancery/validator/v1/admin_pb.js';
import {
  CheckpointService,
  HistoryService,
  MembershipService,
  SealOutcome,
  SubmissionService,
  type UnsealedTransaction as WireUnsealed,
} from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { bundleOf, wholeOf } from '../ledger/dockets/wire.ts';
import type { PeerOptions } from './connect-wallets.ts';
import type {
  RegisterView,
  SealResult,
  UnsealedTransaction,
  ValidatorAddress,
  Validators,
} from './validators.ts';

export interface ValidatorClients extends Validators {
  close(): void;
}

const openSubmissions = (options: RpcClientOptions) => createRpcClient(SubmissionService, options);
const openMembership = (options: RpcClientOptions) => createRpcClient(MembershipService, options);
const openCheckpoints = (options: RpcClientOptions) => createRpcClient(CheckpointService, options);
const openHistory = (options: RpcClientOptions) => createRpcClient(HistoryService, options);
const openAdmin = (options: RpcClientOptions) => createRpcClient(ValidatorAdminService, options);

interface Connection {
  readonly endpoint: string;
  readonly submissions: ReturnType<typeof openSubmissions>;
  readonly membership: ReturnType<typeof openMembership>;
  readonly admin: ReturnType<typeof openAdmin>;
  readonly checkpoints: ReturnType<typeof openCheckpoints>;
  readonly history: ReturnType<typeof openHistory>;
}

/** Short deadline: a query to one of several validators does not wait long for a dead one. */
const quick = { timeoutMs: 3_000 };
/** A submission that times out is sent to another validator; submitting the same transaction twice is idempotent. */
const submitTimeoutMs = 5_000;

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

function registerViewOf(wire: RegisterValidation): RegisterView {
  const { status, reason, memPoolSize, evidence } = wire;
  return {
    status,
    reason,
    pending: memPoolSize,
    evidence: evidence.map(({ kind, validatorIds, height, seenAtMs }) => ({
      kind,
      validatorIds,
      height: Number(height),
      seenAtMs: Number(seenAtMs),
    })),
  };
}

function bodyOf(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return {};
  try {
    return toValue(scanJson(bytes));
  } catch (cause) {
    throw noAnswer(cause);
  }
}

function noAnswer(cause?: unknown): AppError {
  return new AppError('bad_gateway', 'BAD_GATEWAY', 'A validator answered with something else', { cause });
}

/** Reads the log of a validator. */
function historyOf(
  at: (address: ValidatorAddress) => Connection['history'],
): Pick<Validators, 'heights' | 'readDockets'> {
  return {
    async heights(address) {
      const { registers } = await at(address).listHeights({}, quick);
      return new Map(registers.map(({ registerId, height }) => [registerId, wholeOf(height)]));
    },
    async *readDockets(address, { registerId, from, signal }) {
      const request = { registerId, from: BigInt(from) };
      for await (const docket of at(address).readDockets(request, { signal })) yield bundleOf(docket);
    },
  };
}

/** Keeps one connection per validator; a new endpoint replaces it. Each validator must prove its SPIFFE identity. */
export function connectValidators(options: PeerOptions): ValidatorClients {
  const connections = new Map<string, Connection>();

  function close(connection: Connection): void {
    connection.submissions.close();
    connection.membership.close();
    connection.admin.close();
    connection.checkpoints.close();
    connection.history.close();
  }

  function at({ validatorId, endpoint }: ValidatorAddress): Connection {
    const open = connections.get(validatorId);
    if (open?.endpoint === endpoint) return open;
    if (open !== undefined) close(open);
    const expect = serviceSpiffeId(options.runtime.installation, validatorId);
    const peer = { address: endpoint, expect, ...options };
    const connection = {
      endpoint,
      // One small call a transaction.
      submissions: openSubmissions({ ...peer, multiplexed: true }),
      membership: openMembership(peer),
      admin: openAdmin(peer),
      checkpoints: openCheckpoints(peer),
      history: openHistory(peer),
    };
    connections.set(validatorId, connection);
    return connection;
  }

  return {
    async submit(address, submission) {
      const answer = await at(address).submissions.submit(
        { submissionJson: submission },
        { timeoutMs: submitTimeoutMs },
      );
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
    async provePossession(address, registerId, afterPublicKey = '') {
      const request = { registerId, afterPublicKey };
      const answer = await at(address).membership.provePossession(request, quick);
      return {
        validatorId: answer.validatorId,
        publicKey: answer.publicKey,
        algorithm: answer.algorithm,
        signature: answer.signature,
      };
    },
    async view(address, registerId) {
      const answer = await at(address).admin.getStatus({ registerId }, quick);
      if (answer.validatorId !== address.validatorId) throw noAnswer();
      const own = answer.registers.find((one) => one.registerId === registerId);
      return {
        validatorId: answer.validatorId,
        version: answer.version,
        height: Number(own?.height ?? 0n),
        round: own?.round ?? 0,
        proposer: own?.proposer ?? '',
        heard: answer.heard.map((one) => ({ ...one, heardAtMs: Number(one.heardAtMs) })),
        register: own && registerViewOf(own),
      };
    },
    ...historyOf((address) => at(address).history),
    async act(address, registerId, act) {
      return { status: (await at(address).admin.act({ registerId, act }, quick)).status };
    },
    async cosign(address, { registerId, size, rootHash }) {
      const request = { registerId, size: BigInt(size), rootHash };
      const { timeSeconds, signature } = await at(address).checkpoints.cosign(request, quick);
      return { timeSeconds: Number(timeSeconds), signature };
    },
    close() {
      for (const connection of connections.values()) close(connection);
      connections.clear();
    },
  };
}
