import type { JsonObject } from '../encoding/json.ts';
import { CLOCK_LEEWAY_SECONDS, refusePresentation } from './presentation.ts';

/** Latest date that is accepted, in seconds: the end of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/**
 * A NumericDate (RFC 7519 section 2), in seconds since the epoch; undefined when the member is absent.
 * @throws AppError unprocessable FORMAT for anything but a number from 0 to the end of the year 9999
 */
export function findNumericDate(claims: JsonObject, name: string): number | undefined {
  if (!Object.hasOwn(claims, name)) return undefined;
  const value = claims[name];
  if (typeof value !== 'number' || value < 0 || value > LAST_SECOND) {
    refusePresentation('FORMAT', 'A date is no number of seconds', name);
  }
  return value;
}

/**
 * Judges `nbf` and `exp` with the leeway for clocks (RFC 7519 sections 4.1.4, 4.1.5).
 * @throws AppError unprocessable EXPIRED, FORMAT
 */
export function judgeLifetime(claims: JsonObject, atMs: number): void {
  const seconds = atMs / 1000;
  const notBefore = findNumericDate(claims, 'nbf');
  if (notBefore !== undefined && seconds < notBefore - CLOCK_LEEWAY_SECONDS) {
    refusePresentation('EXPIRED', 'It is not valid yet', 'nbf');
  }
  const expires = findNumericDate(claims, 'exp');
  if (expires !== undefined && seconds >= expires + CLOCK_LEEWAY_SECONDS) {
    refusePresentation('EXPIRED', 'It has expired', 'exp');
  }
}
