import { randomFillSync } from 'node:crypto';
import { SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { contextFrom, currentTraceparent, parseTraceparent } from '#kit/telemetry/telemetry.ts';

export interface TraceStep {
  /** 32 hex digits. */
  readonly traceId: string;
  /** W3C traceparent of the call to the service. */
  readonly traceparent: string;
  /** Ends the step's span, where there is one. */
  end(status: number): void;
}

/** Continues the trace of a request: its method and its `traceparent` header. */
export type StepTrace = (method: string, incoming: string | string[] | undefined) => TraceStep;

const poolBytes = 24 * 256;
const endNothing = (): void => undefined;

/**
 * Continues the caller's W3C trace with a new parent id, or starts one, without a tracing provider. Random bytes are
 * drawn in blocks: drawing them for each trace costs more than the rest of the header processing.
 */
export function createTraceStepper(): StepTrace {
  const pool = Buffer.alloc(poolBytes);
  let used = poolBytes;
  const hex = (bytes: number): string => {
    if (used + bytes > poolBytes) {
      randomFillSync(pool);
      used = 0;
    }
    used += bytes;
    return pool.toString('hex', used - bytes, used);
  };
  return (_method, incoming) => {
    const parent = typeof incoming === 'string' ? parseTraceparent(incoming) : undefined;
    const traceId = parent?.traceId ?? hex(16);
    const flags = (parent?.traceFlags ?? 0).toString(16).padStart(2, '0');
    return { traceId, traceparent: `00-${traceId}-${hex(8)}-${flags}`, end: endNothing };
  };
}

/** The same with a span of the process's tracing provider per request. */
export function createSpanStepper(tracer: Tracer): StepTrace {
  const plain = createTraceStepper();
  return (method, incoming) => {
    const parent = contextFrom(typeof incoming === 'string' ? incoming : undefined);
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER }, parent);
    const traceparent = currentTraceparent(trace.setSpan(parent, span));
    if (traceparent === undefined) return plain(method, incoming);
    return {
      traceId: span.spanContext().traceId,
      traceparent,
      end: (status) => {
        span.setAttribute('http.response.status_code', status);
        span.end();
      },
    };
  };
}
