import { TICKS_PER_SECOND } from '../../encoding/timestamp.ts';

/** Weeks, days, hours, minutes and seconds: each has one length, unlike years and months. */
const DURATION =
  /^P(?!$)(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})S)?)?$/;
const SECONDS = [604_800, 86_400, 3_600, 60, 1];

/**
 * Ticks of 100 ns of an ISO 8601 duration of whole weeks, days, hours, minutes and seconds; undefined for any other text.
 */
export function findDuration(text: string): bigint | undefined {
  const parts = DURATION.exec(text)?.slice(1);
  if (parts === undefined) return undefined;
  const seconds = parts.reduce((sum, part, index) => sum + Number(part ?? 0) * (SECONDS[index] ?? 0), 0);
  return BigInt(seconds) * TICKS_PER_SECOND;
}
