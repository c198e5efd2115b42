import { SpanKind } from '@opentelemetry/api';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#kit/db/db.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type RecordedTraces, recordTraces } from '#kit/testing/tracing.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { currentTraceparent } from './telemetry.ts';

describe('a request with a body that writes to the database', () => {
  let traces: RecordedTraces;
  beforeAll(() => {
    traces = recordTraces();
  });
  afterAll(() => traces.stop());

  it('joins HTTP, SQL and outgoing calls in one trace, and in its log lines', async () => {
    const runtime = testRuntime('service-joined');
    const { log, telemetry } = runtime;
    const url = await testDatabase('joined-trace');
    const db = await openDatabase({ url, schema: 'joined', log, telemetry, migrations: [] });
    const app = createHttpServer({ runtime, title: 'Joined' });
    onTestFinished(async () => {
      await app.close();
      await db.close();
    });
    app.post('/things/:id', { config: { policy: 'Anonymous' }, schema: { hide: true } }, async (request) => {
      await db.transact((tx) => sql`select 1 as written`.execute(tx));
      log.info('written');
      return { traceId: request.traceId, sent: currentTraceparent() };
    });
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const answer = await fetch(`http://127.0.0.1:${port}/things/7`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
      body: JSON.stringify({ text: 'x'.repeat(200_000) }),
    });
    const body = (await answer.json()) as { traceId: string; sent: string };
    const server = await waitFor(() => traces.find('POST /things/:id'), { what: 'the server span to end' });
    const query = traces.spans.find((span) => String(span.attributes['db.query.text']).includes('written'));
    expect(server).toMatchObject({
      kind: SpanKind.SERVER,
      attributes: { 'http.route': '/things/:id', 'http.response.status_code': 200 },
      parentSpanContext: { spanId: '00f067aa0ba902b7' },
    });
    expect(query).toMatchObject({
      name: 'SELECT joined',
      parentSpanContext: { spanId: server.spanContext().spanId },
    });
    expect(query?.spanContext().traceId).toBe(traceId);
    expect(body).toEqual({ traceId, sent: `00-${traceId}-${server.spanContext().spanId}-01` });
    expect(runtime.lines.find((line) => line['msg'] === 'written')).toMatchObject({ traceId });
  });
});
