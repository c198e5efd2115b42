import { context, propagation, trace } from '@opentelemetry/api';
import { NodeSDK, type NodeSDKConfiguration } from '@opentelemetry/sdk-node';

type SpanProcessor = NonNullable<NodeSDKConfiguration['spanProcessors']>[number];

/** A span that has ended. */
export type EndedSpan = Parameters<SpanProcessor['onEnd']>[0];

/** A tracing provider that keeps spans in memory. It is global to the thread until it is stopped. */
export interface RecordedTraces {
  /** Ended spans, oldest first. */
  readonly spans: readonly EndedSpan[];
  find(name: string): EndedSpan | undefined;
  stop(): Promise<void>;
}

/** Starts recording; a test stops it in `afterAll`, because other files share the thread. */
export function recordTraces(): RecordedTraces {
  const spans: EndedSpan[] = [];
  const processor: SpanProcessor = {
    onStart: () => undefined,
    onEnd: (span) => void spans.push(span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  const sdk = new NodeSDK({
    serviceName: 'test',
    instrumentations: [],
    spanProcessors: [processor],
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  return {
    spans,
    find: (name) => spans.find((span) => span.name === name),
    stop: async () => {
      await sdk.shutdown();
      trace.disable();
      context.disable();
      propagation.disable();
    },
  };
}
