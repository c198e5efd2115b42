import { manualClock } from '#kit/clock/clock.ts';
import type { Timing } from '../time.ts';

/** Time and chance that a test owns. */
export interface ManualTiming extends Timing {
  /** Moves both clocks, and runs what falls due in order; what those start gets to run in between. */
  advance(ms: number): Promise<void>;
  /** Moves both clocks by one jump, and runs what is overdue only then: a process that was stopped. */
  freeze(ms: number): Promise<void>;
  /** Sets the wall clock alone. */
  skew(ms: number): void;
  /** What `random` gives from now on. */
  chance: number;
}

interface Alarm {
  readonly at: number;
  readonly act: () => void;
}

/** Lets promises that can go on do so, however long their chain is. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function manualTiming(startMs = Date.UTC(2026, 0, 1)): ManualTiming {
  const clock = manualClock(startMs);
  const alarms = new Set<Alarm>();
  let now = 0;
  const runDue = async () => {
    for (;;) {
      const due = [...alarms].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) return;
      alarms.delete(due);
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
      const alarm = { at: now + ms, act };
      alarms.add(alarm);
      return () => void alarms.delete(alarm);
    },
    advance: async (ms) => {
      const until = now + ms;
      await settle();
      for (;;) {
        const next = Math.min(...[...alarms].map(({ at }) => at));
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

/** The same time for a cluster whose calls need none of it. */
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
