import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type TestRuntime, testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { PrincipalService, RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { SpiffeWorkloadAPI } from '#protos/gen/workloadapi_pb.js';
import type { Authority } from '../../svid-issuer/authority/authority.ts';
import { createRpcServer, type RpcContext, type RpcServer } from './rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from './workload.fixture.ts';

function callerOf(token: string): Caller {
  const [kind, clientId] = token.split(':');
  if (kind !== 'service' && kind !== 'user')
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'bad token');
  return { kind, clientId, subject: token, roles: [], scopes: [] } as Partial<Caller> as Caller;
}

/** The forms of transport of unary calls, for `describe.each`: every test of calls is true for both. */
export const transports = [
  ['as calls of their own', false],
  ['on one stream', true],
] as const;

export interface RpcWorld {
  readonly runtime: TestRuntime;
  readonly authority: Authority;
  readonly serverWorkload: FixedWorkload;
  readonly clientWorkload: FixedWorkload;
  readonly server: RpcServer;
  port: number;
  /** Contexts of the calls so far. */
  contexts: RpcContext[];
  /** How bidirectional streams ended. */
  endedStreams: unknown[];
  /** Keys of disposed responses. */
  disposed: string[];
}

/** A server with a service of every kind of method, and a client's identity. */
export async function startRpcWorld(): Promise<RpcWorld> {
  const runtime = testRuntime('test');
  const authority = await memoryAuthority(testInstallation);
  const serverWorkload = await fixedWorkload(authority, 'service-tenant');
  const clientWorkload = await fixedWorkload(authority, 'service-wallet');
  const server = createRpcServer({
    runtime,
    workload: serverWorkload,
    host: '127.0.0.1',
    port: 0,
    authenticate: async (token) => callerOf(token),
  });
  const world: RpcWorld = {
    runtime,
    authority,
    serverWorkload,
    clientWorkload,
    server,
    port: 0,
    contexts: [],
    endedStreams: [],
    disposed: [],
  };
  addCallServices(world);
  addStreamServices(world);
  world.port = await server.listen();
  return world;
}

function addCallServices(world: RpcWorld): void {
  const { server } = world;
  server.add(
    RevocationService,
    {
      listRevocations: async (request, context) => {
        world.contexts.push(context);
        if (request.limit === 404) {
          throw new AppError('not_found', 'THING_NOT_FOUND', 'no such thing', {
            details: { thing: 7 },
            violations: [{ code: 'VAL_X', message: 'x', severity: 'Error' }],
            retryAfterSeconds: 3,
          });
        }
        if (request.limit === 500) throw new Error('the password is hunter2');
        if (request.limit === 999) {
          await new Promise((_resolve, reject) => {
            context.signal.addEventListener('abort', () => reject(context.signal.reason));
          });
        }
        const key = 'a'.repeat(request.limit);
        const dispose = () => world.disposed.push(key.slice(0, 10));
        return { complete: true, revocations: [{ key }], [Symbol.dispose]: dispose };
      },
    },
    { allow: (peer) => peer.clientId !== 'service-stranger' },
  );
  server.add(
    PrincipalService,
    {
      upsertPrincipal: async (request, { caller }) => ({
        principalId: `${caller?.clientId}/${request.clientId}`,
      }),
      listPrincipals: async () => ({}),
      revokePrincipal: async () => ({}),
    },
    { allow: () => true, requireToken: true },
  );
}

function addStreamServices(world: RpcWorld): void {
  const { server } = world;
  server.add(
    SystemSignerService,
    {
      getSystemKey: async () => ({}),
      signControl: async () => ({}),
      signCheckpoint: async () => ({}),
      signOwnership: async () => ({}),
      signConsensus: async function* (requests, context) {
        try {
          for await (const _request of requests) yield {};
          world.endedStreams.push('half-closed');
        } catch (error) {
          world.endedStreams.push(error);
          throw error;
        } finally {
          world.contexts.push(context);
        }
      },
    },
    { allow: () => true },
  );
  server.add(
    SpiffeWorkloadAPI,
    {
      fetchX509SVID: async function* () {
        for (let at = 0; at < 500; at += 1) yield { crl: [new Uint8Array(1000)] };
      },
      fetchX509Bundles: async function* () {
        yield {};
        throw new AppError('conflict', 'HALF_WAY', 'enough');
      },
    },
    { allow: () => true },
  );
}
