import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { callerOf, parseAccessClaims } from '#core/identity/claims.ts';
import { type Bus, connectBus } from '#kit/bus/bus.ts';
import { outboxStart } from '#kit/db/outbox.ts';
import { Cleanup, type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createRpcServer, type RpcHandlers } from '#kit/rpc/rpc.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { connectWorkload, type Workload } from '#kit/workload/workload.ts';
import { EventService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { startBroker } from '../../../standalone/bus/broker.ts';
import { startIssuer } from '../../../svid-issuer/local/issuer.ts';
import { createTenant } from '../../compose.ts';
import { tenantSettings } from '../../config.ts';
import { makeTenantFiles } from '../../tenant.fixture.ts';
import { factOf, openWalletLog, type WalletLog } from './wallets.fixture.ts';

describe('the running tenant with a wallet service', () => {
  const runtime = testRuntime('service-wallet');
  const cleanup = new Cleanup();
  const calls: { readonly peer: string; readonly tokenOf: string | undefined }[] = [];
  let up = false;
  let bus: Bus;
  let log: WalletLog;
  let tenant: Component;

  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'chy-tw-'));
    cleanup.add('directory', () => rm(directory, { recursive: true, force: true }));
    const issuer = await startIssuer({
      dir: join(directory, 'ca'),
      socketDir: join(directory, 's'),
      installation: testInstallation,
      services: ['service-tenant', 'service-wallet'],
      log: runtime.log,
      clock: runtime.clock,
    });
    cleanup.add('issuer', () => issuer.stop());
    const broker = await startBroker({ host: '127.0.0.1', port: 0, log: runtime.log });
    cleanup.add('broker', () => broker.stop());
    bus = await connectBus({ url: broker.url, name: 'service-wallet', log: runtime.log });
    cleanup.add('bus', () => bus.close());
    log = await openWalletLog();
    cleanup.add('log', () => log.close());
    const socket = issuer.sockets['service-wallet'] ?? '';
    const workload = await connectWorkload({ socket, log: runtime.log, clock: runtime.clock });
    cleanup.add('workload', () => workload.stop());
    const port = await serveLog(workload);
    const files = await makeTenantFiles('tenant_wallet', {
      SPIFFE_ENDPOINT_SOCKET: `unix:${issuer.sockets['service-tenant']}`,
      NATS_URL: broker.url,
      CHANCERY_WALLET_GRPC: `127.0.0.1:${port}`,
    });
    cleanup.add('files', () => files.remove());
    const { env } = files;
    tenant = await start({
      service: 'tenant',
      schema: tenantSettings,
      create: createTenant,
      env,
      log: runtime.log,
    });
    cleanup.add('tenant', () => tenant.stop());
  });
  afterAll(() => cleanup.run(runtime.log));

  /** A double of the event log with real certificates; it decodes tokens without verifying their signature. */
  async function serveLog(workload: Workload): Promise<number> {
    const server = createRpcServer({
      runtime,
      workload,
      host: '127.0.0.1',
      port: 0,
      authenticate: async (token) => callerOf(parseAccessClaims(decodeJwt(token)), testInstallation),
    });
    const handlers: RpcHandlers<(typeof EventService)['method']> = {
      readEvents: async ({ after }, { peer, caller }) => {
        calls.push({ peer: peer.clientId, tokenOf: caller?.clientId });
        if (!up) throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'not yet');
        const page = await log.read(after ?? outboxStart, new AbortController().signal);
        const events = page.events.map(({ cursor, kind, data }) => ({
          cursor: { transactionId: cursor.transactionId, sequence: cursor.sequence },
          kind,
          data: JSON.stringify(data),
        }));
        return { events, complete: page.complete };
      },
    };
    server.add(EventService, handlers, { allow: () => true, requireToken: true });
    cleanup.add('gRPC', () => server.stop());
    return server.listen();
  }

  it('is ready before the wallet service, and calls it with its own token', async () => {
    expect((await fetch(`http://${tenant.addresses['ops']}/ready`)).status).toBe(200);
    await waitFor(() => calls.length > 0);
    expect(calls[0]).toEqual({ peer: 'service-tenant', tokenOf: 'service-tenant' });
    const metrics = () => fetch(`http://${tenant.addresses['ops']}/metrics`).then((answer) => answer.text());
    await waitFor(async () => /chancery_tenant_wallet_event_failures_total [1-9]/.test(await metrics()));
  });

  it('catches up on a notification', async () => {
    await log.tell('WalletCreated', factOf('person-1', 1));
    up = true;
    const metrics = () => fetch(`http://${tenant.addresses['ops']}/metrics`).then((answer) => answer.text());
    await waitFor(async () => {
      bus.publish(SUBJECTS.walletEvents);
      return /chancery_tenant_wallet_events_total 1\n/.test(await metrics());
    });
  });
});
