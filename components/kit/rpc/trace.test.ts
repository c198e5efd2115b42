import { trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectBus } from '#kit/bus/bus.ts';
import { withSpan } from '#kit/telemetry/telemetry.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { type RecordedTraces, recordTraces } from '#kit/testing/tracing.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { SpiffeWorkloadAPI } from '#protos/gen/workloadapi_pb.js';
import { startBroker } from '../../standalone/bus/broker.ts';
import { transports } from './rpc.fixture.ts';
import { createRpcClient, createRpcServer } from './rpc.ts';
import { fixedWorkload, memoryAuthority } from './workload.fixture.ts';

describe('one trace through calls and wake signals', () => {
  let traces: RecordedTraces;
  beforeAll(() => {
    traces = recordTraces();
  });
  afterAll(() => traces.stop());

  const currentTrace = () => trace.getActiveSpan()?.spanContext().traceId;

  it.each(transports)(
    'joins client, server and what the handler does, unary calls %s',
    async (_form, multiplexed) => {
      const runtime = testRuntime('traced');
      const authority = await memoryAuthority(testInstallation);
      const workload = await fixedWorkload(authority, 'service-tenant');
      const server = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
      const seen: (string | undefined)[] = [];
      server.add(
        RevocationService,
        {
          listRevocations: async () => {
            seen.push(currentTrace());
            return {};
          },
        },
        { allow: () => true },
      );
      server.add(
        SpiffeWorkloadAPI,
        {
          fetchX509SVID: async function* () {
            yield {};
            seen.push(currentTrace());
            yield {};
          },
          fetchX509Bundles: async function* () {},
        },
        { allow: () => true },
      );
      const address = `127.0.0.1:${await server.listen()}`;
      const options = { address, workload, expect: workload.id, multiplexed, runtime };
      const client = createRpcClient(RevocationService, options);
      const streams = createRpcClient(SpiffeWorkloadAPI, options);
      const traceId = await withSpan(runtime.telemetry.tracer, 'root', {}, async () => {
        await client.listRevocations({});
        for await (const _message of streams.fetchX509SVID({}));
        return currentTrace();
      });
      expect(traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(seen).toEqual([traceId, traceId]);
      const named = traces.spans.filter(
        (span) => span.name.endsWith('/ListRevocations') && span.spanContext().traceId === traceId,
      );
      expect(named.map((span) => span.spanContext().traceId)).toEqual([traceId, traceId]);
      client.close();
      streams.close();
      await server.stop();
    },
  );

  it('continues where a wake signal is received', async () => {
    const runtime = testRuntime('traced');
    const broker = await startBroker({ host: '127.0.0.1', port: 0, log: runtime.log });
    const bus = await connectBus({ url: broker.url, name: 'traced', log: runtime.log });
    const heard: (string | undefined)[] = [];
    bus.subscribe('doorbell.traced', () => heard.push(currentTrace()));
    const traceId = await withSpan(runtime.telemetry.tracer, 'root', {}, () => {
      bus.publish('doorbell.traced');
      return currentTrace();
    });
    await waitFor(() => heard.length > 0);
    expect(heard).toEqual([traceId]);
    await bus.close();
    await broker.stop();
  });
});
