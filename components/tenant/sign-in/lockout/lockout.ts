import { z } from 'zod';

/** A step of the ladder: `failures` consecutive failures from a network lock it for `seconds` or until an unlock. */
export interface LockoutStep {
  readonly failures: number;
  readonly seconds: number | 'until-unlocked';
}

export const defaultLockoutSteps: readonly LockoutStep[] = [
  { failures: 5, seconds: 300 },
  { failures: 10, seconds: 1800 },
  { failures: 15, seconds: 86_400 },
  { failures: 25, seconds: 'until-unlocked' },
];

const step = z.object({
  failures: z.int().min(1).max(100),
  seconds: z.union([z.int().min(1), z.literal('until-unlocked')]),
});

const ladder = z.array(step).min(1).max(20);

/**
 * A ladder in JSON with strictly rising failures:
 * `[{"failures":5,"seconds":300},{"failures":25,"seconds":"until-unlocked"}]`.
 */
export const lockoutSteps = z.string().transform((text, context): readonly LockoutStep[] => {
  const parsed = ladder.safeParse(parseJson(text));
  if (!parsed.success) {
    context.addIssue({ code: 'custom', message: 'must be a JSON array of {failures, seconds}' });
    return z.NEVER;
  }
  const rising = parsed.data.every((one, i) => i === 0 || one.failures > (parsed.data[i - 1]?.failures ?? 0));
  if (!rising) {
    context.addIssue({ code: 'custom', message: 'failures must rise from step to step' });
    return z.NEVER;
  }
  return parsed.data;
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface LockState {
  readonly lockedUntilMs: number | undefined;
  readonly lockedPermanently: boolean;
}

export function isLocked(state: LockState, nowMs: number): boolean {
  return state.lockedPermanently || (state.lockedUntilMs !== undefined && state.lockedUntilMs > nowMs);
}

/**
 * The effect of the nth consecutive failure: a lock at the exact number of a step, and at every failure past the last.
 */
export function lockAfter(
  steps: readonly LockoutStep[],
  failures: number,
  nowMs: number,
): LockState | undefined {
  const last = steps.at(-1);
  const hit =
    steps.find((one) => one.failures === failures) ?? (last && failures > last.failures ? last : undefined);
  if (hit === undefined) return undefined;
  if (hit.seconds === 'until-unlocked') return { lockedUntilMs: undefined, lockedPermanently: true };
  return { lockedUntilMs: nowMs + hit.seconds * 1000, lockedPermanently: false };
}
