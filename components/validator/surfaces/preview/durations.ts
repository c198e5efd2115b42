const two = (value: number): string => String(value).padStart(2, '0');

/** `hh:mm:ss`, with as many hour digits as needed. */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** `hh:mm:ss.fffffff`. */
export function durationText(micros: number): string {
  const whole = Math.max(0, Math.round(micros));
  const seconds = Math.floor(whole / 1_000_000);
  return `${clockText(seconds)}.${String(whole % 1_000_000).padStart(6, '0')}0`;
}
