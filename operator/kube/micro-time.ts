import type { Clock } from '#kit/clock/clock.ts';

/** Kubernetes MicroTime for Lease and Event: RFC 3339 with exactly six decimals. */
export function microTime(clock: Clock): string {
  const micros = clock.nowMicros();
  const seconds = new Date(Number(micros / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(micros % 1_000_000n).padStart(6, '0')}Z`;
}
