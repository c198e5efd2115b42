import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RecordedTraces, recordTraces } from '#kit/testing/tracing.ts';
import { contextFrom, createTelemetry, currentTraceparent, parseTraceparent, withSpan } from './telemetry.ts';
import { startTracing } from './tracing.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const traceparent = `00-${traceId}-${spanId}-01`;

describe('metrics', () => {
  it('are named after component, noun and unit, and live in the registry of the component', async () => {
    const first = createTelemetry({ service: 'service-tenant' });
    const second = createTelemetry({ service: 'validator-0' });
    first.counter('logins_total', 'Logins.', ['outcome']).inc({ outcome: 'ok' });
    second.gauge('pool_bytes', 'Pool.').set(7);
    second.histogram('seal_seconds', 'Sealing.', { buckets: [1, 2] }).observe(1.5);
    const [one, two] = [await first.registry.metrics(), await second.registry.metrics()];
    expect(one).toContain('chancery_tenant_logins_total{outcome="ok"} 1');
    expect(one).not.toContain('pool_bytes');
    expect(two).toContain('chancery_validator_0_pool_bytes 7');
    expect(two).toContain('chancery_validator_0_seal_seconds_bucket{le="2"} 1');
    expect(two).not.toContain('process_cpu');
  });

  it('may be read at each scrape', async () => {
    const { registry, gauge } = createTelemetry({ service: 'service-read' });
    let value = 1;
    gauge('queue_length', 'Queue.', () => value);
    expect(await registry.metrics()).toContain('chancery_read_queue_length 1');
    value = 2;
    expect(await registry.metrics()).toContain('chancery_read_queue_length 2');
  });

  it('of two listeners of one component count into one', async () => {
    const { registry, counter, histogram, gauge } = createTelemetry({ service: 'service-two' });
    for (let listener = 0; listener < 2; listener += 1) {
      counter('acts_total', 'Acts.').inc();
      histogram('act_seconds', 'Acts.').observe(1);
      gauge('open_acts', 'Acts.').inc();
    }
    const text = await registry.metrics();
    expect(text).toContain('chancery_two_acts_total 2');
    expect(text).toContain('chancery_two_act_seconds_count 2');
    expect(text).toContain('chancery_two_open_acts 2');
    expect(() => counter('open_acts', 'Acts.')).toThrow();
  });

  it('of the process belong to a component that owns its process', async () => {
    const telemetry = createTelemetry({ service: 'service-alone', processMetrics: true });
    expect(await telemetry.registry.metrics()).toContain('process_cpu_seconds_total');
    telemetry.shutdown();
    expect(await telemetry.registry.metrics()).toBe('\n');
  });
});

describe('parseTraceparent', () => {
  it('reads version 00, and later versions by their prefix', () => {
    const expected = { traceId, spanId, traceFlags: 1, isRemote: true };
    expect(parseTraceparent(traceparent)).toEqual(expected);
    expect(parseTraceparent(`01-${traceId}-${spanId}-01-more`)).toEqual(expected);
  });

  it.each([
    undefined,
    '',
    'x',
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `${traceparent}-more`,
    ` ${traceparent}`,
  ])('refuses %s', (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

describe('without a provider', () => {
  it('spans cost nothing and traces have no id to send', async () => {
    const { tracer } = createTelemetry({ service: 'service-quiet' });
    expect(await withSpan(tracer, 'act', {}, () => currentTraceparent())).toBeUndefined();
  });

  it('tracing starts only when an endpoint is set', async () => {
    const stop = await startTracing({}, 'service-quiet');
    await stop();
    expect(trace.getTracer('x').startSpan('x').isRecording()).toBe(false);
  });
});

describe('with a provider', () => {
  let traces: RecordedTraces;
  beforeAll(() => {
    traces = recordTraces();
  });
  afterAll(() => traces.stop());

  it('a trace continues across processes by its traceparent', async () => {
    const { tracer } = createTelemetry({ service: 'service-a' });
    let sent: string | undefined;
    await withSpan(tracer, 'send', { kind: 'client', traceparent }, () => {
      sent = currentTraceparent();
    });
    await withSpan(
      tracer,
      'receive',
      { kind: 'server', traceparent: sent, attributes: { 'rpc.method': 'x' } },
      () => 1,
    );
    const [send, receive] = [traces.find('send'), traces.find('receive')];
    expect(sent).toBe(`00-${traceId}-${send?.spanContext().spanId}-01`);
    expect(send).toMatchObject({ kind: SpanKind.CLIENT, parentSpanContext: { spanId } });
    expect(receive?.spanContext().traceId).toBe(traceId);
    expect(receive).toMatchObject({
      kind: SpanKind.SERVER,
      attributes: { 'rpc.method': 'x' },
      parentSpanContext: { spanId: send?.spanContext().spanId },
    });
  });

  it('a span is the child of what is active, also after an await', async () => {
    const { tracer } = createTelemetry({ service: 'service-a' });
    await withSpan(tracer, 'outer', {}, async () => {
      await Promise.resolve();
      await withSpan(tracer, 'inner', {}, () => undefined);
    });
    expect(traces.find('inner')?.parentSpanContext?.spanId).toBe(traces.find('outer')?.spanContext().spanId);
  });

  it('a throw marks the span without its text', async () => {
    const { tracer } = createTelemetry({ service: 'service-a' });
    const failing = withSpan(tracer, 'failing', {}, () => {
      throw new TypeError('hunter2');
    });
    await expect(failing).rejects.toThrow('hunter2');
    expect(traces.find('failing')?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'TypeError' });
  });

  it('a malformed traceparent starts a trace of its own', () => {
    expect(currentTraceparent(contextFrom('nonsense'))).toBeUndefined();
    expect(currentTraceparent(contextFrom(traceparent))).toBe(traceparent);
  });

  it('a process that has a provider keeps it', async () => {
    const stop = await startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }, 'service-a');
    await stop();
    await withSpan(createTelemetry({ service: 'service-a' }).tracer, 'still', {}, () => undefined);
    expect(traces.find('still')).toBeDefined();
  });
});
