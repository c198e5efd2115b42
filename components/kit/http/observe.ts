import { randomBytes } from 'node:crypto';
import {
  type Context,
  context,
  INVALID_TRACEID,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { contextFrom, parseTraceparent } from '#kit/telemetry/telemetry.ts';

/** State of a request's observation while it is served. */
export interface Observation {
  /** Set when there is a trace to join. */
  readonly context: Context | undefined;
  readonly span: Span;
  readonly startedAt: number;
  traceId: string | undefined;
}

/** Observes the requests of one listener: a server span, a count and a duration by route and status, a log line. */
interface Observer {
  begin(request: FastifyRequest): Observation;
  end(request: FastifyRequest, reply: FastifyReply, observation: Observation): void;
}

/** `route` is the pattern, never the path, so that the number of label values is bounded. */
export function createObserver(runtime: Runtime): Observer {
  const { telemetry, log } = runtime;
  const seconds = telemetry.histogram('http_request_seconds', 'Duration of HTTP requests.', {
    labels: ['method', 'route', 'status'],
  });
  return {
    begin: (request) => {
      const parent = contextFrom(traceparentOf(request));
      const span = telemetry.tracer.startSpan(
        `${request.method} ${routeOf(request)}`,
        {
          kind: SpanKind.SERVER,
          attributes: { 'http.request.method': request.method, 'http.route': routeOf(request) },
        },
        parent,
      );
      const traced = span.spanContext().traceId !== INVALID_TRACEID;
      return {
        context: traced ? trace.setSpan(parent, span) : undefined,
        span,
        startedAt: performance.now(),
        traceId: undefined,
      };
    },
    end: (request, reply, observation) => {
      const durationMs = performance.now() - observation.startedAt;
      const labels = { method: request.method, route: routeOf(request), status: reply.statusCode };
      seconds.observe(labels, durationMs / 1000);
      observation.span.setAttribute('http.response.status_code', reply.statusCode);
      if (reply.statusCode >= 500) {
        observation.span.setStatus({ code: SpanStatusCode.ERROR });
      }
      observation.span.end();
      const level = reply.statusCode >= 400 ? 'info' : 'debug';
      if (log.isLevelEnabled(level)) {
        const traceId = traceIdOf(request, observation);
        log[level]({ ...labels, durationMs: Math.round(durationMs * 100) / 100, traceId }, 'request');
      }
    },
  };
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unmatched';
}

function traceparentOf(request: FastifyRequest): string | undefined {
  const header = request.headers['traceparent'];
  return typeof header === 'string' ? header : undefined;
}

/**
 * Trace id of a request: of its span, else of the caller's traceparent, else a random one that is kept for the request.
 */
export function traceIdOf(request: FastifyRequest, observation: Observation | undefined): string {
  const known =
    observation?.traceId ?? spanTraceId(observation) ?? parseTraceparent(traceparentOf(request))?.traceId;
  const traceId = known ?? randomBytes(16).toString('hex');
  if (observation !== undefined) {
    observation.traceId = traceId;
  }
  return traceId;
}

function spanTraceId(observation: Observation | undefined): string | undefined {
  const spanContext = observation?.span.spanContext();
  return spanContext !== undefined && trace.isSpanContextValid(spanContext) ? spanContext.traceId : undefined;
}

/** Runs the rest of a request's handling in its trace. */
export function inTrace(observation: Observation | undefined, next: () => void): void {
  if (observation?.context === undefined) {
    next();
  } else {
    context.with(observation.context, next);
  }
}
