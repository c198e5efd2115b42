import 'reflect-metadata';
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testInstallation } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type RpcWorld, startRpcWorld } from './rpc.fixture.ts';
import { createRpcClient } from './rpc.ts';
import { FLOW_WINDOW_BYTES, MAX_CONCURRENT_STREAMS } from './wire.ts';

// Reads the windows that the other side granted from Node's own HTTP/2 state.
describe('flow windows for a docket', () => {
  let world: RpcWorld;
  let http2: Http2SecureServer;
  const arrived: ServerHttp2Session[] = [];

  beforeAll(async () => {
    world = await startRpcWorld();
    const { key, cert, ca } = world.serverWorkload.current();
    http2 = createSecureServer({ key, cert, ca, requestCert: true, minVersion: 'TLSv1.3' });
    http2.on('session', (session) => arrived.push(session));
    await new Promise<void>((resolve) => http2.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    for (const session of arrived) session.destroy();
    http2.close();
    await world.server.stop();
  });

  function dial(): ClientHttp2Session {
    const { key, cert, ca } = world.clientWorkload.current();
    const options = { key, cert, ca, checkServerIdentity: () => undefined };
    return connect(`https://127.0.0.1:${world.port}`, options);
  }

  it('are granted by a server: to a stream at once, to a connection when its certificate was read', async () => {
    const session = dial();
    await new Promise((resolve) => session.once('remoteSettings', resolve));
    expect(session.remoteSettings).toMatchObject({
      initialWindowSize: FLOW_WINDOW_BYTES.stream,
      maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
    });
    const call = session.request({
      ':method': 'POST',
      ':path': '/chancery.tenant.v1.RevocationService/ListRevocations',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const emptyMessage = Buffer.from([0, 0, 0, 0, 0]);
    call.end(emptyMessage);
    call.resume();
    await new Promise((resolve) => call.once('end', resolve));
    const expected = FLOW_WINDOW_BYTES.connection - emptyMessage.length;
    await waitFor(() => session.state.remoteWindowSize === expected, { what: 'the connection to widen' });
    session.close();
  });

  it('are granted by a client', async () => {
    const client = createRpcClient(RevocationService, {
      address: { host: '127.0.0.1', port: (http2.address() as AddressInfo).port },
      workload: world.clientWorkload,
      expect: `spiffe://${testInstallation}/service/service-tenant`,
      runtime: world.runtime,
    });
    const call = client.listRevocations({}, { timeoutMs: 5_000 });
    await waitFor(
      () => {
        const [session] = arrived;
        return (
          session?.remoteSettings.initialWindowSize === FLOW_WINDOW_BYTES.stream &&
          (session.state.remoteWindowSize ?? 0) >= FLOW_WINDOW_BYTES.stream
        );
      },
      { what: 'the windows of stream and connection' },
    );
    for (const session of arrived) session.destroy();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    client.close();
  });
});
