import { AppError, genericCode } from '#core/errors/errors.ts';
import type { FileChunks } from '#kit/files/downloads.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { FileChunkService } from '#protos/gen/chancery/blueprint/v1/files_pb.js';
import { RecordService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { MembershipService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { Records } from './encryption/files/open-file.ts';
import type { Members } from './wallets/organization/derive-key.ts';

interface ClientOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Client of the members of organisations in the tenant service, over gRPC. */
export function connectMembers(address: Address, options: ClientOptions): Members & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-tenant');
  const client = createRpcClient(MembershipService, { ...options, address, expect });
  return {
    find: async (organizationId, userId) => {
      const { platformUserId } = await client
        .findMember({ organizationId, userId })
        .catch(membersUnavailable);
      return platformUserId === '' ? undefined : platformUserId;
    },
    close: () => client.close(),
  };
}

/** Client of sealed transactions in the register service, over gRPC; it connects on the first call. */
export function connectRecords(address: Address, options: ClientOptions): Records & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-register');
  const client = createRpcClient(RecordService, { ...options, address, expect });
  return {
    getSealed: async (registerId, transactionId) => {
      const { transaction } = await client.getSealedTransaction({ registerId, transactionId });
      return {
        record: transaction?.record ?? new Uint8Array(),
        payload: transaction?.payload ?? new Uint8Array(),
      };
    },
    close: () => client.close(),
  };
}

/** A refusal of the call is not one of the person that asks. */
function membersUnavailable(cause: unknown): never {
  const text = 'members of organisations cannot be read from the tenant service now';
  throw new AppError('unavailable', genericCode('unavailable'), text, { cause });
}

/** Client of the chunks of files in the blueprint service, over gRPC; it connects on the first call. */
export function connectFileChunks(address: Address, options: ClientOptions): FileChunks & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-blueprint');
  const client = createRpcClient(FileChunkService, { ...options, address, expect });
  return {
    read: async (registerId, chunkId) => (await client.readChunk({ registerId, chunkId })).encryptedData,
    close: () => client.close(),
  };
}
