import { sha256Hex } from '#core/crypto/hash.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { claim, dropClaim, keepAnswer } from './store.ts';

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface OnceRequest {
  /** value of the header Idempotency-Key; undefined runs the act without more */
  readonly key: string | undefined;
  /** who asks for what: one caller's key never meets another's */
  readonly scope: string;
  readonly body: unknown;
}

export interface OnceDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
}

const keptMs = 24 * 3_600_000;
const abandonedMs = 60_000;

/**
 * Runs `act` once for a key (D40): a repetition within 24 h answers what the first one answered, another body is
 * refused. Refusals are not kept, so a client may correct the cause and send the same request again.
 */
export async function once(
  deps: OnceDeps,
  request: OnceRequest,
  act: () => Promise<Answer>,
): Promise<Answer> {
  const { key, scope } = request;
  if (key === undefined) return act();
  if (key.length === 0 || key.length > 255) {
    throw new AppError('invalid', 'INVALID_REQUEST', 'Idempotency-Key must have 1 to 255 characters.');
  }
  const bodyHash = sha256Hex(Buffer.from(JSON.stringify(request.body ?? null)));
  const nowMs = deps.clock.nowMs();
  const known = await deps.database.transact((tx) =>
    claim(tx, {
      scope,
      key,
      bodyHash,
      now: new Date(nowMs),
      forgetBefore: new Date(nowMs - keptMs),
      abandonedBefore: new Date(nowMs - abandonedMs),
    }),
  );
  if (known !== undefined) {
    if (known.bodyHash !== bodyHash) throw refusal('IDEMPOTENCY_KEY_REUSED');
    if (known.status === null) throw refusal('IDEMPOTENCY_IN_PROGRESS', { retryAfterSeconds: 1 });
    return { status: known.status, body: known.body };
  }
  const answer = await act().catch(async (error: unknown) => {
    await forget(deps, { scope, key });
    throw error;
  });
  if (answer.status >= 400) await forget(deps, { scope, key });
  else await remember(deps, { scope, key }, answer);
  return answer;
}

/** The answer goes out whatever becomes of it here: what was done is done, and an unanswered claim ends by itself. */
async function remember(deps: OnceDeps, at: { scope: string; key: string }, answer: Answer): Promise<void> {
  await deps.database.transact((tx) => keepAnswer(tx, at, answer)).catch(() => undefined);
}

async function forget(deps: OnceDeps, at: { scope: string; key: string }): Promise<void> {
  await deps.database.transact((tx) => dropClaim(tx, at)).catch(() => undefined);
}
