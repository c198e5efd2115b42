import type { MessageInitShape } from '@bufbuild/protobuf';
import { AppError } from '#core/errors/errors.ts';
import type { Bus } from '#kit/bus/bus.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { type CallOptions, createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import {
  type ListRevocationsRequestSchema,
  type ListRevocationsResponse,
  RevocationService,
  RevocationKind as WireKind,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type Authenticator, type CallerCheck, createAuthenticator } from './authenticator.ts';
import { remoteKeys } from './keys.ts';
import { type Address, requestOverMtls } from './mtls.ts';
import {
  createRevocationView,
  type Revocation,
  type RevocationCursor,
  type RevocationKind,
  type RevocationPage,
  type RevocationSource,
  type RevocationView,
} from './revocations.ts';
import { createServiceTokens } from './service-tokens.ts';

const pageSize = 1_000;
const listTimeoutMs = 5_000;

const KINDS: Readonly<Partial<Record<WireKind, RevocationKind>>> = {
  [WireKind.TOKEN]: 'token',
  [WireKind.SESSION]: 'family',
  [WireKind.IDENTITY]: 'identity',
  [WireKind.PLATFORM_USER]: 'platform_user',
  [WireKind.ORGANIZATION]: 'organization',
};

export interface TenantSessionOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly bus: Bus;
  /** The component's settings of these names. */
  readonly config: {
    readonly CHANCERY_TENANT_HTTPS: Address;
    readonly CHANCERY_TENANT_GRPC: Address;
    readonly CHANCERY_TENANT_MTLS: Address;
  };
  /** This service's client id. */
  readonly clientId: string;
}

export interface TenantSession {
  readonly authenticator: Authenticator & CallerCheck;
  /** For rpc servers: the same function as authenticator.authenticate. */
  readonly authenticate: Authenticator['authenticate'];
  readonly revocations: RevocationView;
  /** This service's own token. */
  readonly token: () => Promise<string>;
  stop(): void;
}

/** Implements tenantSession of auth.ts. */
export function openTenantSession(options: TenantSessionOptions): TenantSession {
  const { runtime, workload, bus, config, clientId } = options;
  const { clock, log } = runtime;
  const expect = serviceSpiffeId(workload.trustDomain, 'service-tenant');
  const endpoint = config.CHANCERY_TENANT_MTLS;
  const token = createServiceTokens({ workload, endpoint, clientId, clock, log });
  const address = config.CHANCERY_TENANT_GRPC;
  const client = createRpcClient(RevocationService, { address, workload, expect, token, runtime });
  const revocations = createRevocationView({ source: revocationSource(client), bus, clock, log });
  const keys = remoteKeys({ clock, fetch: () => fetchKeys(workload, config.CHANCERY_TENANT_HTTPS, expect) });
  const authenticator = createAuthenticator({
    installation: workload.trustDomain,
    keys,
    revocations,
    clock,
  });
  return {
    authenticator,
    authenticate: (text) => authenticator.authenticate(text),
    revocations,
    token,
    stop: () => {
      revocations.stop();
      client.close();
    },
  };
}

async function fetchKeys(workload: Workload, address: Address, expect: string): Promise<unknown> {
  const answer = await requestOverMtls({
    workload,
    address,
    expect,
    method: 'GET',
    path: '/.well-known/jwks.json',
  });
  if (answer.status !== 200) {
    throw new AppError('unavailable', 'TOKEN_KEYS_UNAVAILABLE', `the key set answered ${answer.status}`);
  }
  return JSON.parse(answer.text);
}

interface RevocationLog {
  listRevocations(
    request: MessageInitShape<typeof ListRevocationsRequestSchema>,
    options: CallOptions,
  ): Promise<ListRevocationsResponse>;
}

/** The tenant service's revocation log over gRPC. */
function revocationSource(client: RevocationLog): RevocationSource {
  return {
    list: async (cursor) => {
      const request = { limit: pageSize, ...(cursor !== undefined && { after: cursor }) };
      return pageOf(await client.listRevocations(request, { timeoutMs: listTimeoutMs }));
    },
  };
}

function pageOf(response: ListRevocationsResponse): RevocationPage {
  const { next, complete } = response;
  const cursor: RevocationCursor | undefined = next && {
    transactionId: next.transactionId,
    sequence: next.sequence,
  };
  return { revocations: response.revocations.map(revocationOf), next: cursor, complete };
}

function revocationOf(wire: ListRevocationsResponse['revocations'][number]): Revocation {
  const kind = KINDS[wire.kind];
  if (kind === undefined) {
    // A revocation of an unknown kind cannot be enforced, so the view goes stale and the service reports it.
    throw new AppError('internal', 'REVOCATION_UNKNOWN', `unknown kind of revocation ${wire.kind}`);
  }
  return {
    kind,
    key: wire.key,
    notBeforeMs: Number(wire.notBeforeMs),
    expiresAtMs: Number(wire.expiresAtMs),
  };
}
