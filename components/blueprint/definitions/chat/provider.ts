import type { JsonObject } from '#core/encoding/json.ts';
import { refusal } from '../../errors.ts';
import type { Judged } from '../../evaluation/judge.ts';

/** A message of a conversation. */
export interface ChatMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** What a provider answers: the last message, in view of the earlier ones and of the definition. */
export interface ChatTurn {
  /** Oldest first; the last one is the user's. */
  readonly messages: readonly ChatMessage[];
  /** The definition of the session; absent in a new one. */
  readonly definition: JsonObject | undefined;
  /** Judges a definition by every rule of publishing. Errors: unavailable/DRAFT_JUDGING_BUSY. */
  judge(definition: JsonObject): Promise<Judged>;
  /** Aborted when the answer is not wanted any more. What is yielded later is dropped. */
  readonly signal: AbortSignal;
}

/** A part of an answer. */
export type ChatOutput =
  /** A part of its text. */
  | { readonly kind: 'chunk'; readonly text: string }
  | { readonly kind: 'toolExecuting'; readonly tool: string; readonly arguments: JsonObject }
  /** `error` says why the tool failed. */
  | { readonly kind: 'toolExecuted'; readonly tool: string; readonly error?: string }
  /** The whole definition as the answer changes it. One that is no draft ends the answer with its refusal. */
  | { readonly kind: 'definition'; readonly definition: JsonObject };

/** Answers messages: a language model, or its absence. */
export interface ChatProvider {
  /**
   * Answers the last message of a conversation.
   *
   * An AppError ends the answer, and the client gets its code and text. Any other error is logged, and the client gets
   * AI_UNAVAILABLE.
   */
  answer(turn: ChatTurn): AsyncIterable<ChatOutput>;
}

/** The provider of installations without a language model: it refuses every message as AI_UNAVAILABLE. */
export const noProvider: ChatProvider = {
  answer: () => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refusal('AI_UNAVAILABLE')) }),
  }),
};
