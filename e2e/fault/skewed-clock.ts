/**
 * Given to one process by `NODE_OPTIONS=--import=URL?aheadMs=N`: its wall clock is so many milliseconds ahead of the
 * machine's, as on a host whose clock is wrong. Monotonic time and timers stay as they are.
 */
const aheadMs = Number(new URL(import.meta.url).searchParams.get('aheadMs'));
const rightNow = Date.now;
const now = (): number => rightNow() + aheadMs;

const skewed = new Proxy(Date, {
  get: (date, name) => (name === 'now' ? now : Reflect.get(date, name)),
  construct: (date, given, created) => Reflect.construct(date, given.length === 0 ? [now()] : given, created),
});

Object.defineProperty(globalThis, 'Date', { value: skewed });
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + aheadMs });
