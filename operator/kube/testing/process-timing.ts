import type { Timing } from '../time.ts';

/** Time as one process has it: nothing falls due while it stands still, and nothing ever again once it is dead. */
export interface ProcessTiming extends Timing {
  /** As SIGSTOP: clocks go on, the process does not. */
  freeze(): void;
  /** As SIGCONT: what is overdue happens, in the order in which it fell due. */
  thaw(): void;
  /** As SIGKILL. */
  kill(): void;
}

/** A process within the time of a test. */
export function processTiming(world: Timing): ProcessTiming {
  let state: 'running' | 'frozen' | 'dead' = 'running';
  const overdue = new Set<() => void>();
  const meet = (act: () => void) => {
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
      const cancel = world.after(ms, () => meet(once));
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
      for (const act of overdue) world.after(0, () => meet(act));
      overdue.clear();
    },
    kill: () => {
      state = 'dead';
      overdue.clear();
    },
  };
}
