import { AppError } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { openMethodHub } from '#kit/hub/hub.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import type { testRuntime } from '#kit/testing/runtime.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { chatHub } from '../definitions/chat/hub.ts';
import { type ChatProvider, type ChatTurn, noProvider } from '../definitions/chat/provider.ts';
import type { DraftJudge } from '../evaluation/pool.ts';

interface Opening {
  readonly db: Database<BlueprintDatabase>;
  readonly judge: DraftJudge;
  readonly runtime: ReturnType<typeof testRuntime>;
}

/** The chat hub over a provider that a test writes; without one it is that of installations without a model. */
export async function openTestChat({ db, judge, runtime }: Opening) {
  /** Turns that a provider answered. */
  const turns: ChatTurn[] = [];
  /** Callers whose tokens are revoked. */
  const revoked = new Set<string>();
  /** The provider, and the longest time of an answer. */
  const double: { answer: ChatProvider['answer']; answerMs: number } = {
    answer: noProvider.answer,
    answerMs: 60_000,
  };
  const provider: ChatProvider = {
    answer: (turn) => {
      turns.push(turn);
      return double.answer(turn);
    },
  };
  const { clock, log } = runtime;
  const limiter = createRateLimiter({ profile: 'production', clock });
  const deps = {
    ...{ db, judge, clock, log, provider, limiter },
    get answerMs() {
      return double.answerMs;
    },
  };
  const hub = await openMethodHub(chatHub(deps), {
    runtime,
    authenticator: {
      assertCurrent: ({ subject }) => {
        if (revoked.has(subject)) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'it was revoked');
      },
    },
  });
  return { hub, turns, revoked, double, lines: runtime.lines };
}
