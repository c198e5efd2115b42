import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chainDers, ecKey } from '#core/trust/testing/chains.ts';
import { der, oid, sequence } from '#core/trust/testing/der-writer.ts';
import { createServiceTokens } from '#kit/auth/auth.ts';
import { Cleanup, type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { connectWorkload, serviceSpiffeId } from '#kit/workload/workload.ts';
import { TrustListService } from '#protos/gen/chancery/tenant/v1/trust_lists_pb.js';
import { startBroker } from '../../../standalone/bus/broker.ts';
import { type Issuer, startIssuer } from '../../../svid-issuer/local/issuer.ts';
import { createTenant } from '../../compose.ts';
import { tenantSettings } from '../../config.ts';
import { makeTenantFiles } from '../../tenant.fixture.ts';
import { trustListRpc } from './rpc.ts';
import { startListTenant } from './tenant-lists.fixture.ts';

const runtime = testRuntime('other');
const cleanup = new Cleanup();
let issuer: Issuer;
let running: Component;
let the: Awaited<ReturnType<typeof startListTenant>>;

beforeAll(async () => {
  const { log, clock } = runtime;
  const directory = await mkdtemp(join(tmpdir(), 'chy-tl-'));
  cleanup.add('directory', () => rm(directory, { recursive: true, force: true }));
  issuer = await startIssuer({
    dir: join(directory, 'ca'),
    socketDir: join(directory, 's'),
    installation: testInstallation,
    services: ['service-tenant', 'service-credential', 'service-wallet'],
    log,
    clock,
  });
  cleanup.add('issuer', () => issuer.stop());
  const broker = await startBroker({ host: '127.0.0.1', port: 0, log });
  cleanup.add('broker', () => broker.stop());
  const files = await makeTenantFiles('tenant_trust_rpc', {
    SPIFFE_ENDPOINT_SOCKET: `unix:${issuer.sockets['service-tenant']}`,
    NATS_URL: broker.url,
  });
  cleanup.add('files', () => files.remove());
  running = await start({
    service: 'tenant',
    schema: tenantSettings,
    create: createTenant,
    env: files.env,
    log,
  });
  cleanup.add('tenant', () => running.stop());
  the = await startListTenant('tenant_trust_answers');
  cleanup.add('lists', () => the.stop());
});
afterAll(() => cleanup.run(runtime.log));

function at(listener: string) {
  const [host = '', port = ''] = (running.addresses[listener] ?? '').split(':');
  return { host, port: Number(port) };
}

async function clientOf(clientId: string, withToken = true) {
  const { log, clock } = runtime;
  const workload = await connectWorkload({ socket: issuer.sockets[clientId] ?? '', log, clock });
  cleanup.add('workload', () => workload.stop());
  const token = createServiceTokens({ workload, endpoint: at('mtls'), clientId, clock, log });
  const expected = serviceSpiffeId(testInstallation, 'service-tenant');
  const client = createRpcClient(TrustListService, {
    address: at('grpc'),
    workload,
    expect: expected,
    ...(withToken && { token }),
    runtime,
  });
  cleanup.add('client', () => client.close());
  return client;
}

it('is for the credential service alone, with its token', async () => {
  const request = { trustListId: 'eu-pid' };
  const credential = await clientOf('service-credential');
  await expect(credential.getAnchors(request)).rejects.toMatchObject({
    kind: 'not_found',
    code: 'TRUSTLIST_UNAVAILABLE',
  });
  const wallet = await clientOf('service-wallet');
  await expect(wallet.getAnchors(request)).rejects.toMatchObject({ kind: 'forbidden' });
  const tokenless = await clientOf('service-credential', false);
  await expect(tokenless.getAnchors(request)).rejects.toMatchObject({ kind: 'unauthenticated' });
});

it('answers the anchors of the active version, and none of a stale list in strict mode', async () => {
  const { tenant, anchors } = the;
  const nextUpdate = new Date(tenant.clock.nowMs() + 1_000).toISOString();
  for (const [sequence, services] of [
    [1, undefined],
    [2, [{ certificates: [anchors[1]?.base64 ?? ''] }]],
  ] as const) {
    const list = { sequence, nextUpdate, ...(services !== undefined && { services }) };
    expect((await the.upload(the.listOf(list), the.pinned)).statusCode).toBe(201);
  }
  // The handlers read neither the caller nor the peer.
  const rpc = (strictFreshness: boolean) => trustListRpc({ ...tenant.deps.trustLists, strictFreshness });
  const ask = async (strictFreshness: boolean) =>
    Reflect.apply(rpc(strictFreshness).getAnchors, undefined, [{ trustListId: 'eu-pid' }, {}]);
  const issuersOf = async (certificate: Uint8Array, strictFreshness = true) =>
    (await Reflect.apply(rpc(strictFreshness).findIssuers, undefined, [{ certificate }, {}])).issuers;
  const fresh = { trustListId: 'eu-pid', sequenceNumber: 2n, stale: false, strict: true };
  expect(await ask(true)).toMatchObject({ ...fresh, roots: [anchors[1]?.der] });
  expect((await ask(true)).nextUpdate).toMatchObject({
    seconds: BigInt(Math.floor(Date.parse(nextUpdate) / 1_000)),
  });
  const [former, present] = anchors.map(({ der }) => der);
  if (former === undefined || present === undefined) throw new Error('no anchors');
  const listed = { trustListId: 'eu-pid', sequenceNumber: 2n };
  // Both anchors are their own issuers; the first is of a version that another took the place of.
  expect(await issuersOf(present)).toEqual([{ ...listed, stale: false, anchors: [present] }]);
  expect(await issuersOf(former)).toEqual([]);
  await expect(issuersOf(Buffer.from('none'))).rejects.toMatchObject({ kind: 'invalid' });
  // Names of strangers: without attributes, and no text.
  const key = ecKey('P-256');
  for (const name of [
    sequence(),
    sequence(der(0x31, sequence(oid('2.5.4.3'), der(0x0c, Buffer.of(0xff))))),
  ]) {
    const [certificate = Buffer.of()] = chainDers('stranger', [key, key], { 0: { issuer: name } });
    expect(await issuersOf(certificate)).toEqual([]);
  }
  tenant.clock.advance(1_000);
  expect(await issuersOf(present)).toEqual([{ ...listed, stale: true, anchors: [] }]);
  expect(await issuersOf(present, false)).toEqual([{ ...listed, stale: true, anchors: [present] }]);
  expect(await ask(false)).toMatchObject({ stale: true, strict: false, roots: [anchors[1]?.der] });
  expect(await ask(true)).toMatchObject({ stale: true, strict: true, roots: [] });
});
