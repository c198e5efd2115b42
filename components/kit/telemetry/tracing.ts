import { ProxyTracerProvider, trace } from '@opentelemetry/api';
import type { Env } from '#kit/config/config.ts';

/** Ends tracing: exports what is pending. */
type StopTracing = () => Promise<void>;

/**
 * Starts the OpenTelemetry provider of this process when `OTEL_EXPORTER_OTLP_ENDPOINT` is set; the other `OTEL_*`
 * variables are the SDK's own. A process that already has a provider keeps it. The SDK is loaded only here, because
 * that takes a quarter of a second.
 */
export async function startTracing(env: Env, service: string): Promise<StopTracing> {
  if (env['OTEL_EXPORTER_OTLP_ENDPOINT'] === undefined || hasProvider()) {
    return async () => undefined;
  }
  const { NodeSDK } = await import('@opentelemetry/sdk-node');
  const sdk = new NodeSDK({
    serviceName: env['OTEL_SERVICE_NAME'] ?? service,
    instrumentations: [],
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  return () => sdk.shutdown();
}

function hasProvider(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer('chancery') !== undefined;
}
