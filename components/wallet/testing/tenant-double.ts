import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { audiencesOf, issuerOf, type Tier } from '#core/identity/tiers.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import { createRpcServer } from '#kit/rpc/rpc.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { connectWorkload, type Workload } from '#kit/workload/workload.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { startIssuer } from '../../svid-issuer/local/issuer.ts';

/** A test double of the tenant service that another component can start against, with real sockets and certificates. */
export interface TenantDouble {
  /** Settings of a component that runs as `clientId`. */
  env(clientId: string): Promise<Readonly<Record<string, string>>>;
  workload(clientId: string): Promise<Workload>;
  /** A signed access token. */
  token(tier: Tier, claims: Readonly<Record<string, unknown>>): Promise<string>;
  stop(): Promise<void>;
}

export async function startTenantDouble(): Promise<TenantDouble> {
  const cleanup = new Cleanup();
  const runtime = testRuntime('service-tenant');
  const { log, clock } = runtime;
  const dir = mkdtempSync(join(tmpdir(), 'chy-'));
  cleanup.add('directory', () => rmSync(dir, { recursive: true, force: true }));
  const issuer = await startIssuer({
    dir: join(dir, 'ca'),
    socketDir: join(dir, 's'),
    installation: testInstallation,
    services: ['service-tenant'],
    log,
    clock,
  });
  cleanup.add('issuer', () => issuer.stop());
  const workload = async (clientId: string) => {
    const opened = await connectWorkload({ socket: await issuer.add(clientId), log, clock });
    cleanup.add(clientId, () => opened.stop());
    return opened;
  };
  const own = await workload('service-tenant');
  const rpc = createRpcServer({ runtime, workload: own, host: '127.0.0.1', port: 0 });
  const listRevocations = async () => ({
    revocations: [],
    next: { transactionId: 1n, sequence: 1n },
    complete: true,
  });
  rpc.add(RevocationService, { listRevocations }, { allow: () => true });
  const grpc = `127.0.0.1:${await rpc.listen()}`;
  cleanup.add('gRPC', () => rpc.stop());
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'test', alg: 'ES256', use: 'sig' };
  const app = createHttpServer({ runtime, title: 'tenant', https: own });
  const open = { config: { policy: 'Anonymous' }, schema: { hide: true } } as const;
  app.get('/.well-known/jwks.json', open, async () => ({ keys: [jwk] }));
  const token: TenantDouble['token'] = (tier, claims) => {
    const kind = tier === 'service' ? 'service' : 'user';
    const all = { token_type: kind, token_use: 'access', tier, client_id: 'first-party', ...claims };
    return new SignJWT({ jti: crypto.randomUUID(), ...all })
      .setProtectedHeader({ alg: 'ES256', kid: 'test', typ: 'at+jwt' })
      .setIssuer(issuerOf(testInstallation))
      .setAudience(audiencesOf(testInstallation, tier))
      .setSubject(crypto.randomUUID())
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
  };
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, body),
  );
  app.post('/api/internal/service-auth/token', open, async (request) => {
    const form = new URLSearchParams(String(request.body));
    const accessToken = await token('service', { client_id: form.get('client_id') ?? '' });
    return { access_token: accessToken, token_type: 'Bearer', expires_in: 300 };
  });
  const https = `127.0.0.1:${await listenHttp(app, { host: '127.0.0.1', port: 0 })}`;
  cleanup.add('HTTPS', () => app.close());
  return {
    env: async (clientId) => ({
      CHANCERY_INSTALLATION: testInstallation,
      CHANCERY_LISTEN_HOST: '127.0.0.1',
      CHANCERY_OPS_PORT: '0',
      CHANCERY_HTTPS_PORT: '0',
      CHANCERY_GRPC_PORT: '0',
      CHANCERY_LOG_LEVEL: 'silent',
      CHANCERY_RATE_LIMIT_PROFILE: 'development',
      SPIFFE_ENDPOINT_SOCKET: `unix:${await issuer.add(clientId)}`,
      CHANCERY_TENANT_HTTPS: https,
      CHANCERY_TENANT_GRPC: grpc,
      CHANCERY_TENANT_MTLS: https,
    }),
    workload,
    token,
    stop: () => cleanup.run(log),
  };
}
