import { AppError, genericCode } from '#core/errors/errors.ts';
import { defaultHashCost, type HashCost, hashPassword, needsRehash, verifyPassword } from './hash.ts';

export interface PasswordResult {
  readonly correct: boolean;
  /** The password rehashed with the current cost parameters, when the stored hash has others. */
  readonly rehashed?: string | undefined;
}

/** Runs slow hashes in a bounded queue, so that a flood of sign-ins does not occupy all threads. */
export interface Passwords {
  hash(password: string): Promise<string>;
  /** Without a stored hash it verifies a dummy, so that an unknown account takes as long as a known one. */
  verify(password: string, stored: string | undefined): Promise<PasswordResult>;
}

interface PasswordQueueOptions {
  readonly concurrent: number;
  readonly waiting: number;
  readonly cost?: HashCost;
}

/** @throws AppError unavailable when the queue is full */
export async function createPasswords(options: PasswordQueueOptions): Promise<Passwords> {
  const cost = options.cost ?? defaultHashCost;
  const dummy = await hashPassword('no account has this password', cost);
  const enter = createGate(options);
  return {
    hash: (password) => enter(() => hashPassword(password, cost)),
    verify: (password, stored) =>
      enter(async () => {
        const matches = await verifyPassword(password, stored ?? dummy);
        const correct = matches && stored !== undefined;
        if (!correct || !needsRehash(stored, cost)) return { correct };
        return { correct, rehashed: await hashPassword(password, cost) };
      }),
  };
}

function createGate(options: PasswordQueueOptions): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= options.concurrent) {
      if (waiting.length >= options.waiting) {
        const message = 'Too many sign-ins are being processed; try again shortly.';
        throw new AppError('unavailable', genericCode('unavailable'), message, { retryAfterSeconds: 1 });
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
