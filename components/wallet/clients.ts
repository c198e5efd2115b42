import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError, genericCode, isAppError } from '#core/errors/errors.ts';
import type { FileChunks } from '#kit/files/downloads.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { FileChunkService } from '#protos/gen/chancery/blueprint/v1/files_pb.js';
import {
  CredentialStatus,
  HolderService,
  VerifierAuthState as ProtoAuthState,
} from '#protos/gen/chancery/credential/v1/holder_pb.js';
import { RecordService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { MembershipService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { ListedStatus } from './database/schema.ts';
import type { Records } from './encryption/files/open-file.ts';
import { isJudged, refusal } from './errors.ts';
import type { CredentialJudge, VerifierAuthState } from './wallets/credentials/judge.ts';
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

/** Judgements of issuers and verifiers by the credential service, over gRPC; it connects on the first call. */
export function connectCredentials(
  address: Address,
  options: ClientOptions,
): CredentialJudge & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-credential');
  const client = createRpcClient(HolderService, { ...options, address, expect });
  return {
    judgeIssuer: async ({ certificates, keyId }, { isDocument: document, status }) => {
      const index = status && { uri: status.uri, index: BigInt(status.index) };
      const judged = await client
        .judgeIssuer({
          certificates: [...certificates],
          keyId,
          document,
          ...(index !== undefined && { status: index }),
        })
        .catch(credentialsUnavailable);
      return {
        publicKey: judged.publicKey.length === 0 ? undefined : judged.publicKey,
        notBeforeMs: Number(judged.notBeforeMs),
        notAfterMs: Number(judged.notAfterMs),
        isTrusted: judged.trusted,
        reason: judged.reason === '' ? undefined : judged.reason,
        status: listedStatuses[judged.status],
      };
    },
    resolveRequest: async ({ requestUri, requestObject, clientId = '' }) => {
      const source =
        requestObject === undefined
          ? ({ case: 'requestUri', value: requestUri ?? '' } as const)
          : ({ case: 'requestObject', value: requestObject } as const);
      const resolved = await client
        .resolveRequest({ source, clientId }, { timeoutMs: 20_000 })
        .catch(refusedOrUnavailable);
      const { dcqlQuery, authState, anchorSetId, reason, state, $typeName: _, ...terms } = resolved;
      return {
        ...terms,
        state,
        query: toValue(scanJson(dcqlQuery)),
        authState: authStates[authState],
        anchorSetId: anchorSetId === '' ? undefined : anchorSetId,
        reason: reason === '' ? undefined : reason,
      };
    },
    close: () => client.close(),
  };
}

/** A judge where no credential service is. */
export const noCredentials: CredentialJudge = {
  judgeIssuer: async () => credentialsUnavailable(undefined),
  resolveRequest: async () => credentialsUnavailable(undefined),
};

const listedStatuses: Readonly<Record<CredentialStatus, ListedStatus | undefined>> = {
  [CredentialStatus.UNSPECIFIED]: undefined,
  [CredentialStatus.NOT_PRESENT]: undefined,
  [CredentialStatus.VALID]: 'Active',
  [CredentialStatus.SUSPENDED]: 'Suspended',
  [CredentialStatus.REVOKED]: 'Revoked',
};

/** What is not named proves nothing. */
const authStates: Readonly<Record<ProtoAuthState, VerifierAuthState>> = {
  [ProtoAuthState.UNSPECIFIED]: 'Unverifiable',
  [ProtoAuthState.TRUSTED_LIST_VERIFIED]: 'TrustedListVerified',
  [ProtoAuthState.AUTHENTIC_UNTRUSTED]: 'AuthenticUntrusted',
  [ProtoAuthState.UNVERIFIABLE]: 'Unverifiable',
};

function credentialsUnavailable(cause: unknown): never {
  throw refusal('CREDENTIALS_UNAVAILABLE', { cause });
}

/** What is wrong with a request is the verifier's, and is passed on; everything else is an outage. */
function refusedOrUnavailable(error: unknown): never {
  if (isAppError(error) && isJudged(error.code)) throw error;
  credentialsUnavailable(error);
}
