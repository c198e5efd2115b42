import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApi } from '../harness/api.ts';
import { createRegister, createWallet, signIn, waitOnline } from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

const exported = z.object({
  resourceSpans: z.array(
    z.object({
      scopeSpans: z.array(
        z.object({
          scope: z.object({ name: z.string() }),
          spans: z.array(z.object({ traceId: z.string(), name: z.string(), kind: z.number() })),
        }),
      ),
    }),
  ),
});

interface Span {
  readonly scope: string;
  readonly name: string;
  readonly traceId: string;
}

/** A collector that keeps the spans that it receives. */
async function startCollector(spans: Span[]): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = exported.parse(JSON.parse(Buffer.concat(chunks).toString()));
      for (const { scope, spans: some } of resourceSpans.flatMap((each) => each.scopeSpans)) {
        spans.push(...some.map(({ name, traceId }) => ({ scope: scope.name, name, traceId })));
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('tracing', () => {
  const spans: Span[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-tracing-'));
  let system: LocalSystem | undefined;
  let collector: Server | undefined;

  beforeAll(async () => {
    const { server, url } = await startCollector(spans);
    collector = server;
    system = await startSystem({
      dataDir,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_BSP_SCHEDULE_DELAY: '200',
      },
    });
  });
  afterAll(async () => {
    await system?.stop();
    collector?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('one submission is one trace: HTTP, gRPC between three services, SQL', async () => {
    if (system === undefined) throw new Error('not started');
    const api = createApi(system.state.gatewayUrl);
    const { access_token: token } = await signIn(api, system.state);
    const owner = await createWallet(api, token, 'ED25519');
    const registerId = await createRegister(api, token, 'Traced', owner);
    await waitOnline(api, token, registerId);
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    await api.expect(202, 'POST', `/api/registers/${registerId}/transactions`, {
      token,
      headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
      json: { transactionType: 'Action', senderAddress: owner.walletAddress, payload: 'e30=', metadata: {} },
    });
    const ofTrace = (): Span[] => spans.filter((span) => span.traceId === traceId);
    const wanted: Readonly<Record<string, (span: Span) => boolean>> = {
      register: ({ scope }) => scope === 'chancery.register',
      wallet: ({ scope }) => scope === 'chancery.wallet',
      validator: ({ scope }) => scope === 'chancery.validator',
      HTTP: ({ name }) => name.startsWith('POST /api/registers'),
      gRPC: ({ name }) => /SubmissionService/.test(name),
      SQL: ({ name }) => /^(select|insert|update|with|sql)/i.test(name),
    };
    // A span is exported when it has ended, in batches: the one around the others comes last.
    const missing = (): string[] =>
      Object.keys(wanted).filter((kind) => !ofTrace().some((span) => wanted[kind]?.(span)));
    await expect.poll(missing, { timeout: 15_000 }).toEqual([]);
  });
});
