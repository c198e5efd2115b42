import type { Timing } from '#kit/clock/timing.ts';

/** Clock of one process: timers do not fire while it is frozen, and never after it is killed. */
export interface ProcessTiming extends Timing {
  /** Like SIGSTOP: clocks continue, timers do not fire. */
  freeze(): void;
  /** Like SIGCONT: overdue timers fire in their order. */
  thaw(): void;
  /** Like SIGKILL. */
  kill(): void;
}

/** Creates the clock of a process on the clock of a test. */
export function processTiming(world: Timing): ProcessTiming {
  let state: 'running' | 'frozen' | 'dead' = 'running';
  const overdue = new Set<() => void>();
  const runOrDefer = (act: () => void) => {
    if (state === 'running') act();
    else if (state === 'frozen') overdue.add(act);
  };
  return {
    nowMs: () => world.nowMs(),
    nowMicros: () => world.nowMicros(),
    monotonicMs: () => world.monotonicMs(),
    random: () => world.random(),
    after: (ms, act) => {
      const once = () => act();
      const cancel = world.after(ms, () => runOrDefer(once));
      return () => {
        cancel();
        overdue.delete(once);
      };
    },
    freeze: () => {
      if (state === 'running') state = 'frozen';
    },
    thaw: () => {
      if (state !== 'frozen') return;
      state = 'running';
      for (const act of overdue) world.after(0, () => runOrDefer(act));
      overdue.clear();
    },
    kill: () => {
      state = 'dead';
      overdue.clear();
    },
  };
}
