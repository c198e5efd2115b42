import { currentTraceparent, parseTraceparent } from '#kit/telemetry/telemetry.ts';

/** W3C trace id of the active span; undefined without one. */
export function traceId(): string | undefined {
  return parseTraceparent(currentTraceparent())?.traceId;
}
