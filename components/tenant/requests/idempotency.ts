import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { claimKey, completeKey, releaseKey } from './store.ts';

/** How long an answer is kept for a repetition (decision D40). */
export const idempotencyLifeMs = 86_400_000;
/** No request runs longer: listeners end them before. */
const longestRequestMs = 300_000;
const keyPattern = /^[\x21-\x7e]{1,255}$/;

/** Requests with an `Idempotency-Key` take effect once a day; a repetition gets the first answer. */
export interface Idempotency {
  /** Throws IDEMPOTENCY_KEY_REUSED for another body, and conflict while the first request is still running. */
  once<T>(request: FastifyRequest, act: () => Promise<T>): Promise<T>;
}

export function createIdempotency(db: Database<TenantDatabase>, clock: Clock): Idempotency {
  return {
    async once(request, act) {
      const key = request.headers['idempotency-key'];
      if (key === undefined) return act();
      if (typeof key !== 'string' || !keyPattern.test(key)) {
        throw new AppError(
          'invalid',
          genericCode('invalid'),
          'Idempotency-Key must be 1 to 255 visible characters.',
        );
      }
      const keyHash = hash(request.caller?.subject ?? '', request.method, request.url, key);
      const bodyHash = hash(JSON.stringify(request.body ?? null));
      const nowMs = clock.nowMs();
      const claim = {
        keyHash,
        bodyHash,
        nowMs,
        keptFromMs: nowMs - idempotencyLifeMs,
        runningFromMs: nowMs - longestRequestMs,
      };
      const stored = await db.transact((tx) => claimKey(tx, claim));
      if (stored !== undefined) return repeated(stored, bodyHash);
      return run(db, keyHash, act);
    },
  };
}

/** An answer stored under the key is one that `act` gave: the key holds caller, method and path. */
function repeated<T>(
  stored: { readonly bodyHash: Buffer; readonly answer: string | undefined },
  bodyHash: Buffer,
): T {
  if (!stored.bodyHash.equals(bodyHash)) throw refusal('IDEMPOTENCY_KEY_REUSED');
  if (stored.answer === undefined) {
    throw new AppError(
      'conflict',
      genericCode('conflict'),
      'The first request with this key is still running.',
    );
  }
  return JSON.parse(stored.answer);
}

async function run<T>(db: Database<TenantDatabase>, keyHash: Buffer, act: () => Promise<T>): Promise<T> {
  try {
    const answer = await act();
    await db.transact((tx) => completeKey(tx, keyHash, JSON.stringify(answer)));
    return answer;
  } catch (cause) {
    await db.transact((tx) => releaseKey(tx, keyHash));
    throw cause;
  }
}

function hash(...parts: string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}
