import { createPublicKey, generateKeyPairSync, randomUUID, verify } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { WalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { encryptionHandlers } from '../../../wallet/encryption/rpc.ts';
import { walletHandlers } from '../../../wallet/signing/rpc.ts';
import {
  administrator,
  openFixture,
  person,
  type Replica,
  routesFor,
} from '../../../wallet/testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../../../wallet/testing/http-client.ts';
import { connectOrganizationKeys } from './clients.ts';
import { type KeyUse, signWith } from './organization-keys.ts';

/** The wallet service behind real connections: its routes and its gRPC handlers, with the token of the tenant. */
let replica: Replica;
let wallets: HttpClient;
let server: Server;
let rpc: RpcServer;
let keys: ReturnType<typeof connectOrganizationKeys>;
/** What answers instead of the wallet service. */
let instead: { readonly status: number; readonly body: string } | undefined;
let requests: string[] = [];

const service = person({
  kind: 'service',
  tier: 'service',
  clientId: 'service-tenant',
  platformUserId: undefined,
});

beforeAll(async () => {
  replica = await openFixture('tenant_keys');
  wallets = createHttpClient(replica);
  const app = routesFor(replica, new Map([['Bearer own', service]]));
  const authority = await memoryAuthority(testInstallation);
  const [own, theirs] = [
    await fixedWorkload(authority, 'service-tenant'),
    await fixedWorkload(authority, 'service-wallet'),
  ];
  const { key, cert, ca } = theirs.current();
  server = createServer({ key, cert, ca, requestCert: true, minVersion: 'TLSv1.3' }, (request, response) => {
    const relay = async () => {
      requests.push(`${request.method} ${request.url}`);
      const payload = await text(request);
      const { authorization = '' } = request.headers;
      const answer = await app.inject({
        method: request.method === 'POST' ? 'POST' : 'GET',
        url: request.url ?? '',
        headers: { authorization, ...(payload !== '' && { 'content-type': 'application/json' }) },
        ...(payload !== '' && { payload }),
      });
      const { status, body } = instead ?? { status: answer.statusCode, body: answer.body };
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    };
    void relay();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const runtime = testRuntime('wallet');
  rpc = createRpcServer({
    runtime,
    workload: theirs,
    host: '127.0.0.1',
    port: 0,
    authenticate: async () => service,
  });
  const handlers = { ...walletHandlers(replica.deps), ...encryptionHandlers(replica.deps) };
  rpc.add(WalletService, handlers, { allow: () => true, requireToken: true });
  const grpc = { host: '127.0.0.1', port: await rpc.listen() };
  const { port } = server.address() as AddressInfo;
  keys = connectOrganizationKeys({
    runtime,
    workload: own,
    token: async () => 'own',
    http: { host: '127.0.0.1', port },
    grpc,
  });
});
afterAll(async () => {
  keys.close();
  await rpc.stop();
  await new Promise((resolve) => server.close(resolve));
  await wallets.close();
  await replica.close();
});
beforeEach(() => {
  instead = undefined;
  requests = [];
});

async function makeWallet(keyType: string) {
  const organizationId = randomUUID();
  wallets.callers.set(organizationId, administrator(organizationId));
  const { walletAddress, id } = await wallets.made(organizationId, keyType, { organizationId });
  return { owner: { organizationId, walletAddress }, id };
}

const codeOf = async (act: Promise<unknown>) => {
  try {
    await act;
    return 'no refusal';
  } catch (error) {
    if (isAppError(error)) return error.code;
    throw error;
  }
};

describe.each([
  ['NISTP256', 'Primary'],
  ['ED25519', 'HaipCoKey'],
])('the keys of a wallet of %s', (keyType, source) => {
  it('sign under the names that the wallet service gives them', async () => {
    const { owner } = await makeWallet(keyType);
    expect(await keys.findWallet(owner.organizationId)).toBe(owner.walletAddress);
    const seen = new Set<string>();
    for (const use of ['issuer', 'root'] as const satisfies readonly KeyUse[]) {
      const key = await keys.get(owner, use);
      if (use === 'issuer') expect(key.source).toBe(source);
      const bytes = Buffer.from(`signed by ${use}`);
      const signature = await signWith(keys, owner, { key, use })(bytes);
      const publicKey = createPublicKey({ key: key.spki, format: 'der', type: 'spki' });
      expect(verify('sha256', bytes, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
      seen.add(key.thumbprint);
    }
    expect(seen.size).toBe(2);
    expect(requests.every((request) => request.includes('/issuer-cert-key'))).toBe(true);
  });
});

describe('the wallet service', () => {
  it('refuses wallets of others, of no organisation, of RSA, and locked ones', async () => {
    const [first, second] = [await makeWallet('NISTP256'), await makeWallet('ED25519')];
    const crossed = { ...first.owner, organizationId: second.owner.organizationId };
    for (const act of [
      () => keys.get(crossed, 'issuer'),
      () => keys.sign(crossed, 'root', Buffer.alloc(32)),
      () => keys.get({ ...first.owner, walletAddress: 'w1nothing' }, 'issuer'),
    ])
      expect(await codeOf(act())).toBe('WALLET_NOT_FOUND');
    expect(await keys.findWallet(randomUUID())).toBeUndefined();
    await replica.db.transact((tx) =>
      tx.updateTable('wallets').set({ status: 'Locked' }).where('id', '=', first.id).execute(),
    );
    expect(await codeOf(keys.get(first.owner, 'issuer'))).toBe('WALLET_LOCKED');
    expect(await codeOf(keys.sign(first.owner, 'issuer', Buffer.alloc(32)))).toBe('WALLET_LOCKED');
    expect(await keys.findWallet(first.owner.organizationId)).toBeUndefined();
  });

  it('that answers otherwise decides nothing', async () => {
    const { owner } = await makeWallet('NISTP256');
    const spki = (namedCurve: string) =>
      generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'der', type: 'spki' });
    const keyBody = (key: Buffer) =>
      JSON.stringify({ publicKeySpki: key.toString('base64'), boundKeySource: 'Primary', thumbprint: 'x' });
    const trailing = Buffer.concat([spki('P-256'), Buffer.from([0])]);
    for (const [status, body] of [
      [200, '{}'],
      [200, 'text'],
      [200, keyBody(spki('P-384'))],
      [200, keyBody(trailing)],
      [200, keyBody(Buffer.from('key'))],
      [204, ''],
      [403, JSON.stringify({ code: 'FORBIDDEN' })],
      [404, JSON.stringify({ code: 'NOT_FOUND' })],
      [500, JSON.stringify({ code: 'INTERNAL_ERROR' })],
      [503, ''],
    ] as const) {
      instead = { status, body };
      expect(await codeOf(keys.get(owner, 'issuer')), body).toBe('WALLETS_UNAVAILABLE');
    }
    instead = { status: 422, body: JSON.stringify({ code: 'CERT_KEY_NOT_ELIGIBLE' }) };
    expect(await codeOf(keys.get(owner, 'issuer'))).toBe('CERT_KEY_NOT_ELIGIBLE');
    instead = undefined;
    const key = await keys.get(owner, 'issuer');
    for (const signature of [Buffer.alloc(64), Buffer.alloc(63), Buffer.alloc(72, 1)]) {
      instead = { status: 200, body: JSON.stringify({ signature: signature.toString('base64') }) };
      const sign = signWith(keys, owner, { key, use: 'issuer' });
      expect(await codeOf(sign(Buffer.from('x')))).toBe('WALLETS_UNAVAILABLE');
    }
  });
});
