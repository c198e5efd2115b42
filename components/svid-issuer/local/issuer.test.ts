import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { workloadContract } from '#kit/workload/workload.contract.ts';
import { connectWorkload } from '#kit/workload/workload.ts';
import { X509BundlesResponseSchema } from '#protos/gen/workloadapi_pb.js';
import { type Issuer, startIssuer } from './issuer.ts';

const log = createLogger({ service: 'test', level: 'silent' });
const clock = systemClock();
const trustDomain = 'test.local';

function place(): { root: string; dir: string; socketDir: string } {
  const root = mkdtempSync(join(tmpdir(), 'iss-'));
  return { root, dir: join(root, 'ca'), socketDir: join(root, 's') };
}

workloadContract('local issuer', async () => {
  const { root, dir, socketDir } = place();
  const issuer = await startIssuer({
    dir,
    socketDir,
    installation: trustDomain,
    services: ['service-wallet'],
    log,
    clock,
  });
  return {
    source: { socket: `unix:${issuer.sockets['service-wallet']}` },
    trustDomain,
    spiffeId: `spiffe://${trustDomain}/service/service-wallet`,
    rotate: () => issuer.rotate(),
    stop: async () => {
      await issuer.stop();
      rmSync(root, { recursive: true });
    },
  };
});

describe('local issuer', () => {
  let at = place();
  let issuer: Issuer | undefined;
  const start = async (more: { svidTtlSeconds?: number; installation?: string } = {}): Promise<Issuer> => {
    issuer = await startIssuer({
      dir: at.dir,
      socketDir: at.socketDir,
      installation: trustDomain,
      services: ['service-wallet'],
      log,
      clock,
      ...more,
    });
    return issuer;
  };
  const socketOf = (from: Issuer, clientId = 'service-wallet'): string => from.sockets[clientId] ?? '';

  beforeEach(() => {
    at = place();
  });
  afterEach(async () => {
    await issuer?.stop();
    issuer = undefined;
    rmSync(at.root, { recursive: true });
  });

  it('keeps its authority over a restart, in files that only the owner reads', async () => {
    const first = await start();
    const bundle = first.bundlePem;
    await first.stop();
    expect(existsSync(socketOf(first))).toBe(false);
    expect((await start()).bundlePem).toBe(bundle);
    expect(statSync(join(at.dir, 'ca.key')).mode & 0o777).toBe(0o600);
    expect(statSync(at.socketDir).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(at.dir, 'ca.crt'), 'utf8')).toBe(bundle);
  });

  it('refuses the authority of another installation', async () => {
    await (await start()).stop();
    await expect(start({ installation: 'other.local' })).rejects.toMatchObject({
      kind: 'conflict',
      code: 'ISSUER_TRUST_DOMAIN',
    });
  });

  it('refuses a name that makes no SPIFFE id, and a path that is too long', async () => {
    const running = await start();
    await expect(running.add('../service-tenant')).rejects.toMatchObject({ code: 'SVID_REFUSED' });
    await expect(running.add('x'.repeat(120))).rejects.toMatchObject({ code: 'ISSUER_SOCKET_PATH' });
  });

  it('replaces a socket file that a killed process left', async () => {
    const running = await start();
    writeFileSync(join(at.socketDir, 'validator-0.sock'), '');
    const socket = await running.add('validator-0');
    const workload = await connectWorkload({ socket, log, clock });
    expect(workload.id).toBe(`spiffe://${trustDomain}/service/validator-0`);
    workload.stop();
  });

  it('adds a service while it runs, once', async () => {
    const running = await start();
    const [one, two] = await Promise.all([running.add('validator-1'), running.add('validator-1')]);
    expect(one).toBe(two);
    expect(running.sockets['validator-1']).toBe(one);
  });

  it('renews at half life without a request', async () => {
    // Certificates end at whole seconds, so at least five of six are left.
    const running = await start({ svidTtlSeconds: 6 });
    const workload = await connectWorkload({ socket: socketOf(running), log, clock });
    const first = workload.current();
    await waitFor(() => workload.current().cert !== first.cert, { deadlineMs: 10_000 });
    expect(Date.now()).toBeLessThan(first.expiresAtMs);
    workload.stop();
  });

  it('refuses callers without the security header', async () => {
    const running = await start();
    const error = await callRaw(socketOf(running), 'FetchX509SVID', new Metadata()).catch((e: unknown) => e);
    expect((error as ServiceError).code).toBe(status.INVALID_ARGUMENT);
  });

  it('serves bundles', async () => {
    const running = await start();
    const metadata = new Metadata();
    metadata.set('workload.spiffe.io', 'true');
    const bytes = await callRaw(socketOf(running), 'FetchX509Bundles', metadata);
    const { bundles } = fromBinary(X509BundlesResponseSchema, bytes);
    expect(Object.keys(bundles)).toEqual([`spiffe://${trustDomain}`]);
  });

  it('answers unknown calls with UNIMPLEMENTED', async () => {
    const running = await start();
    const error = await callRaw(socketOf(running), 'FetchWITSVID', new Metadata()).catch((e: unknown) => e);
    expect((error as ServiceError).code).toBe(status.UNIMPLEMENTED);
  });
});
const python = process.env['CHANCERY_TEST_SPIFFE_PYTHON'];

describe('an independent SPIFFE client', () => {
  it.skipIf(python === undefined)(
    'reads its identity (set CHANCERY_TEST_SPIFFE_PYTHON to a Python that has the package `spiffe`)',
    async () => {
      const { root, dir, socketDir } = place();
      const issuer = await startIssuer({
        dir,
        socketDir,
        installation: trustDomain,
        services: ['a'],
        log,
        clock,
      });
      const program = `
from spiffe import WorkloadApiClient
with WorkloadApiClient('unix://${issuer.sockets['a']}') as client:
    print(client.fetch_x509_svid().spiffe_id)
`;
      const { stdout } = await promisify(execFile)(python ?? 'python3', ['-c', program], { timeout: 20_000 });
      expect(stdout.trim()).toBe(`spiffe://${trustDomain}/service/a`);
      await issuer.stop();
      rmSync(root, { recursive: true });
    },
    30_000,
  );
});

describe('workload client', () => {
  it('reports why it got no identity', async () => {
    const { root, socketDir } = place();
    const socket = join(socketDir, 'nobody.sock');
    await expect(connectWorkload({ socket, log, clock, firstSvidTimeoutMs: 300 })).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'WORKLOAD_IDENTITY_MISSING',
    });
    rmSync(root, { recursive: true });
  });

  it('waits for an issuer that starts later, and survives its restart', async () => {
    const { root, dir, socketDir } = place();
    const options = { dir, socketDir, installation: trustDomain, services: ['service-wallet'], log, clock };
    const waiting = connectWorkload({ socket: join(socketDir, 'service-wallet.sock'), log, clock });
    const first = await startIssuer(options);
    const workload = await waiting;
    const before = workload.current().cert;
    await first.stop();
    expect(workload.current().cert).toBe(before);
    const second = await startIssuer(options);
    await waitFor(() => workload.current().cert !== before);
    workload.stop();
    await second.stop();
    rmSync(root, { recursive: true });
  });

  it('calls the other subscribers when one throws', async () => {
    const { root, dir, socketDir } = place();
    const runtime = testRuntime('test');
    const issuer = await startIssuer({
      dir,
      socketDir,
      installation: trustDomain,
      services: ['a'],
      log,
      clock,
    });
    const workload = await connectWorkload({ socket: issuer.sockets['a'] ?? '', log: runtime.log, clock });
    let told = false;
    workload.onRotate(() => {
      throw new Error('mine');
    });
    workload.onRotate(() => {
      told = true;
    });
    await issuer.rotate();
    await waitFor(() => told);
    expect(runtime.lines.some((line) => line['msg'] === 'rotation callback failed')).toBe(true);
    workload.stop();
    await issuer.stop();
    rmSync(root, { recursive: true });
  });
});

function callRaw(socket: string, method: string, metadata: Metadata): Promise<Uint8Array> {
  const client = new Client(`unix:${socket}`, credentials.createInsecure());
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const call = client.makeServerStreamRequest(
    `/SpiffeWorkloadAPI/${method}`,
    (value: Buffer) => value,
    (value: Buffer) => value,
    Buffer.alloc(0),
    metadata,
  );
  call.on('data', (bytes: Buffer) => resolve(bytes));
  call.on('error', reject);
  return promise.finally(() => {
    call.cancel();
    client.close();
  });
}
