import { manualClock } from '#kit/clock/clock.ts';
import type { Timing } from '#kit/clock/timing.ts';

/** Time and randomness that a test controls. */
export interface ManualTiming extends Timing {
  /** Advances both clocks and runs due timers in order; promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Advances both clocks in one jump and runs overdue timers afterwards, as after a frozen process. */
  freeze(ms: number): Promise<void>;
  /** Moves the wall clock only. */
  skew(ms: number): void;
  /** Result of `random` from now on. */
  chance: number;
}

interface Timer {
  readonly at: number;
  readonly act: () => void;
}

/** Resolves after all pending promise callbacks have run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function manualTiming(startMs = Date.UTC(2026, 0, 1)): ManualTiming {
  const clock = manualClock(startMs);
  const timers = new Set<Timer>();
  let now = 0;
  const runDue = async () => {
    for (;;) {
      const due = [...timers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) return;
      timers.delete(due);
      due.act();
      await settle();
    }
  };
  const move = (ms: number) => {
    now += ms;
    clock.advance(ms);
  };
  const timing: ManualTiming = {
    nowMs: () => clock.nowMs(),
    nowMicros: () => clock.nowMicros(),
    monotonicMs: () => now,
    chance: 0.5,
    random: () => timing.chance,
    after: (ms, act) => {
      const timer = { at: now + ms, act };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance: async (ms) => {
      const until = now + ms;
      await settle();
      for (;;) {
        const next = Math.min(...[...timers].map(({ at }) => at));
        if (next > until) break;
        move(Math.max(0, next - now));
        await runDue();
      }
      move(until - now);
      await settle();
    },
    freeze: async (ms) => {
      move(ms);
      await runDue();
    },
    skew: (ms) => clock.advance(ms),
  };
  return timing;
}

/** The same clock, with timers of zero milliseconds as microtasks. */
export function instant(timing: ManualTiming): Timing {
  return {
    ...timing,
    after: (ms, act) => {
      if (ms > 0) return timing.after(ms, act);
      queueMicrotask(act);
      return () => undefined;
    },
  };
}
