import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { LogEvent } from 'kysely';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';

/** Queries slower than this are logged, without their values. */
const slowQueryMs = 1_000;

/**
 * Observer of queries for kysely: a client span inside the active trace, a duration by outcome, a warning when slow.
 * Statements contain placeholders only, so no value is logged.
 */
export function createQueryObserver(options: {
  readonly log: Logger;
  readonly telemetry: Telemetry;
  readonly schema: string;
}): (event: LogEvent) => void {
  const { log, telemetry, schema } = options;
  const seconds = telemetry.histogram('sql_query_seconds', 'Duration of SQL statements.', {
    labels: ['outcome'],
  });
  return (event) => {
    const durationMs = event.queryDurationMillis;
    seconds.observe({ outcome: event.level === 'error' ? 'error' : 'ok' }, durationMs / 1000);
    if (trace.getActiveSpan()?.isRecording() === true) {
      recordSpan(telemetry, schema, event);
    }
    if (durationMs > slowQueryMs) {
      log.warn(
        { durationMs: Math.round(durationMs), statement: event.query.sql.slice(0, 500) },
        'slow query',
      );
    }
  };
}

function recordSpan(telemetry: Telemetry, schema: string, event: LogEvent): void {
  const endTime = Date.now();
  const verb = /^\s*(\w+)/.exec(event.query.sql)?.[1]?.toUpperCase() ?? 'SQL';
  const span = telemetry.tracer.startSpan(`${verb} ${schema}`, {
    kind: SpanKind.CLIENT,
    startTime: endTime - event.queryDurationMillis,
    attributes: {
      'db.system.name': 'postgresql',
      'db.namespace': schema,
      'db.operation.name': verb,
      'db.query.text': event.query.sql.slice(0, 2_000),
    },
  });
  if (event.level === 'error') {
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(endTime);
}
