import { z } from 'zod';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { failure } from '../../errors.ts';
import { type CallerIdentity, connectTo } from '../transport/clients.ts';
import type { Directory } from './directory.ts';

/** The gRPC clients of one validator. */
interface Connection {
  readonly endpoint: string;
  readonly submissions: RpcClient<typeof SubmissionService.method>;
  readonly admin: RpcClient<typeof ValidatorAdminService.method>;
}

/** Connections to the other validators. An outage is an AppError of kind unavailable or timeout. */
export interface Connections {
  /** @throws AppError unavailable VALIDATOR_UNAVAILABLE for a validator that has not announced itself */
  to(validatorId: string): Promise<Connection>;
  /**
   * Calls a validator and parses its answer. A malformed answer, which is an AppError bad_gateway or a ZodError, counts as
   * a fault of the validator.
   * @throws AppError bad_gateway BAD_GATEWAY for a malformed answer
   */
  call<T>(validatorId: string, call: (connection: Connection) => Promise<T>): Promise<T>;
  close(): void;
}

/** The calls of the surfaces give up after this time: a person waits for the combined answer. */
export const peerTimeoutMs = 2_000;

interface ConnectionsOptions extends CallerIdentity {
  readonly directory: Directory;
  /** Called when a validator's answer is malformed. */
  onFault?(validatorId: string): void;
}

/** One connection per validator, replaced when its endpoint changes. Each validator must prove its SPIFFE identity. */
export function openConnections(options: ConnectionsOptions): Connections {
  const { directory, onFault, ...caller } = options;
  const connections = new Map<string, Connection>();

  async function to(validatorId: string): Promise<Connection> {
    const entry = await directory.find(validatorId);
    if (entry === undefined)
      throw failure('VALIDATOR_UNAVAILABLE', { message: `${validatorId} has not announced itself` });
    const { endpoint } = entry;
    const open = connections.get(validatorId);
    if (open?.endpoint === endpoint) return open;
    if (open !== undefined) close(open);
    const peer = { clientId: validatorId, address: endpoint };
    const connection = {
      endpoint,
      submissions: connectTo(SubmissionService, { ...peer, multiplexed: true }, caller),
      admin: connectTo(ValidatorAdminService, peer, caller),
    };
    connections.set(validatorId, connection);
    return connection;
  }

  return {
    to,
    async call(validatorId, call) {
      const connection = await to(validatorId);
      try {
        return await call(connection);
      } catch (error) {
        const isMalformed = isAppError(error, 'bad_gateway') || error instanceof z.ZodError;
        if (!isMalformed) throw error;
        onFault?.(validatorId);
        throw malformedAnswer(error);
      }
    },
    close() {
      for (const connection of connections.values()) close(connection);
      connections.clear();
    },
  };
}

function close(connection: Connection): void {
  connection.submissions.close();
  connection.admin.close();
}

/** @returns AppError bad_gateway BAD_GATEWAY */
export function malformedAnswer(cause: unknown): AppError {
  return failure('BAD_GATEWAY', { cause });
}
