import {
  type Attributes,
  type Context,
  context,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Metrics and traces of one component instance. Local mode has several in one process, each with its registry. */
export interface Telemetry {
  readonly registry: Registry;
  readonly tracer: Tracer;
  /** `chancery_<component>_<name>`; the name ends with its unit, for counters `_total`. */
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  /** With a function, its value is read at every scrape. */
  gauge(name: string, help: string, labels?: readonly string[] | (() => number)): Gauge;
  /** Buckets in the unit of the name; request durations in seconds when absent. */
  histogram(name: string, help: string, options?: HistogramOptions): Histogram;
  /** Drops the metrics. The tracing provider belongs to the process, not to a component. */
  shutdown(): void;
}

interface HistogramOptions {
  readonly labels?: readonly string[];
  readonly buckets?: readonly number[];
}

interface TelemetrySettings {
  readonly service: string;
  readonly registry?: Registry;
  /** Memory, CPU and event loop of the process; only for a component that owns its process. */
  readonly processMetrics?: boolean;
}

const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of `service` (`service-tenant` and `tenant` both give `chancery_tenant_...`). Names are made once. */
export function createTelemetry(settings: TelemetrySettings): Telemetry {
  const registry = settings.registry ?? new Registry();
  const component = settings.service.replace(/^service-/, '').replaceAll(/[^a-zA-Z0-9]/g, '_');
  const fullName = (name: string) => `chancery_${component}_${name}`;
  if (settings.processMetrics === true) {
    collectDefaultMetrics({ register: registry });
  }
  return {
    registry,
    tracer: trace.getTracer(`chancery.${component}`),
    counter: (name, help, labels = []) =>
      existing(registry, fullName(name), Counter) ??
      new Counter({ name: fullName(name), help, labelNames: [...labels], registers: [registry] }),
    gauge: (name, help, labels = []) => {
      const settings = { name: fullName(name), help, registers: [registry] };
      const made = existing(registry, settings.name, Gauge);
      if (made !== undefined) {
        return made;
      }
      return typeof labels === 'function'
        ? new Gauge({ ...settings, collect: collectFrom(labels) })
        : new Gauge({ ...settings, labelNames: [...labels] });
    },
    histogram: (name, help, options = {}) =>
      existing(registry, fullName(name), Histogram) ??
      new Histogram({
        name: fullName(name),
        help,
        labelNames: [...(options.labels ?? [])],
        buckets: [...(options.buckets ?? secondsBuckets)],
        registers: [registry],
      }),
    shutdown: () => registry.clear(),
  };
}

/** prom-client passes the gauge as `this`. */
function collectFrom(read: () => number): (this: Gauge) => void {
  return function collect() {
    this.set(read());
  };
}

/** The existing metric of that name, so that two listeners of one component count into one. */
function existing<M>(
  registry: Registry,
  name: string,
  kind: abstract new (...args: never[]) => M,
): M | undefined {
  const metric: unknown = registry.getSingleMetric(name);
  return metric instanceof kind ? metric : undefined;
}

/** The two ends of a span that the kit opens; callers name what they do. */
interface SpanOptions {
  readonly kind?: 'server' | 'client' | 'producer' | 'consumer' | 'internal';
  /** W3C traceparent of the remote parent; the active span is the parent when absent. */
  readonly traceparent?: string | undefined;
  readonly attributes?: Attributes;
}

const spanKinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
} as const;

/**
 * Runs `act` inside a new span; what it calls, awaits and sends belongs to that span. A throw marks it failed.
 *
 * @returns what `act` returns.
 */
export async function withSpan<T>(
  tracer: Tracer,
  name: string,
  options: SpanOptions,
  act: () => T | Promise<T>,
): Promise<T> {
  const parent = options.traceparent === undefined ? context.active() : contextFrom(options.traceparent);
  const span = tracer.startSpan(
    name,
    { kind: spanKinds[options.kind ?? 'internal'], attributes: options.attributes ?? {} },
    parent,
  );
  try {
    return await context.with(trace.setSpan(parent, span), act);
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : 'error' });
    throw error;
  } finally {
    span.end();
  }
}

/**
 * The W3C traceparent to send with a call (HTTP header, gRPC metadata, NATS header).
 *
 * @returns undefined when there is no trace to continue.
 */
export function currentTraceparent(from: Context = context.active()): string | undefined {
  const span = trace.getSpanContext(from);
  if (span === undefined || !trace.isSpanContextValid(span)) {
    return undefined;
  }
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  return `00-${span.traceId}-${span.spanId}-${flags}`;
}

/** W3C trace id of the active span, 32 hexadecimal digits; undefined without one. */
export function currentTraceId(): string | undefined {
  return parseTraceparent(currentTraceparent())?.traceId;
}

/** A context that continues the given W3C traceparent; the active context when it is absent or malformed. */
export function contextFrom(traceparent: string | undefined): Context {
  const parsed = parseTraceparent(traceparent);
  return parsed === undefined ? context.active() : trace.setSpanContext(context.active(), parsed);
}

/** A parsed W3C traceparent. */
interface RemoteSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote: true;
}

/** Parses version 00 and, as the W3C recommendation asks, the same prefix of later versions. */
export function parseTraceparent(text: string | undefined): RemoteSpan | undefined {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text ?? '');
  const [, version, traceId, spanId, flags, rest] = match ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) {
    return undefined;
  }
  const tooLong = version === '00' && rest !== undefined;
  if (version === 'ff' || tooLong || /^0+$/.test(traceId) || /^0+$/.test(spanId)) {
    return undefined;
  }
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
