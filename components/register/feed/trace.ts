import { currentTraceparent, parseTraceparent } from '#kit/telemetry/telemetry.ts';

/** W3C id of the trace that is under way; undefined when there is none. */
export function traceId(): string | undefined {
  return parseTraceparent(currentTraceparent())?.traceId;
}
