import { type AppError, isAppError } from '#core/errors/errors.ts';
import type { HubClient } from '#kit/hub/hub.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal } from '../../errors.ts';
import type { DraftJudge } from '../../evaluation/pool.ts';
import { presentFindings } from '../judging/present.ts';
import { parseDefinition } from './definition.ts';
import { sendChatEvent } from './events.ts';
import type { ChatOutput, ChatProvider } from './provider.ts';
import type { ChatSession } from './session.ts';
import { untilAborted } from './until-aborted.ts';

export interface AnswerDeps {
  readonly provider: ChatProvider;
  readonly judge: Pick<DraftJudge, 'judge'>;
  readonly log: Logger;
  /** Longest time for an answer, ms; two minutes when absent. */
  readonly answerMs?: number;
}

/** A message of a client, which is answered. */
interface Answering {
  readonly session: ChatSession;
  readonly client: HubClient;
  readonly messageId: string;
  readonly text: string;
  /** Takes the text of the answer, part by part. */
  readonly sendChunk: (text: string) => void;
  /** Aborted when the client wants no more of the answer; besides, the session may cancel it. */
  readonly unwanted: readonly AbortSignal[];
}

/** UTF-16 code units of an answer. */
const mostCharacters = 100_000;
/** Parts of an answer: chunks, tools and definitions. */
const mostOutputs = 20_000;
const defaultAnswerMs = 120_000;

/**
 * Answers a message by the provider: sends chunks, tools and changed definitions as they come, and at the end
 * `MessageComplete`, also when the answer is cancelled, or `SessionError`.
 * @returns what `SessionError` said
 */
export async function answerMessage(deps: AnswerDeps, answering: Answering): Promise<AppError | undefined> {
  const { session, client, messageId, text, unwanted } = answering;
  const cancelled = AbortSignal.any([session.begin(), ...unwanted]);
  const late = AbortSignal.timeout(deps.answerMs ?? defaultAnswerMs);
  const signal = AbortSignal.any([cancelled, late]);
  const reply = { text: '' };
  try {
    await take(deps, answering, { signal, reply });
    if (late.aborted && !cancelled.aborted) throw refusal('ANSWER_LIMIT');
  } catch (error) {
    if (!cancelled.aborted) {
      session.finish(undefined);
      const failure = failureOf(deps, error, late.aborted);
      sendChatEvent(client, 'SessionError', [failure.code, failure.message]);
      return failure;
    }
  }
  // A message that was cancelled before its answer began is no part of the conversation.
  session.finish(cancelled.aborted && reply.text === '' ? undefined : { text, reply: reply.text });
  sendChatEvent(client, 'MessageComplete', [messageId]);
  return undefined;
}

function failureOf({ log }: AnswerDeps, error: unknown, isLate: boolean): AppError {
  if (isLate) return refusal('ANSWER_LIMIT', { cause: error });
  if (isAppError(error) && error.kind !== 'internal') return error;
  log.error({ err: error }, 'the provider of the chat failed');
  return refusal('AI_UNAVAILABLE', { cause: error, message: 'the language model failed; try again' });
}

interface Taking {
  readonly signal: AbortSignal;
  /** Text that the answer has so far. */
  readonly reply: { text: string };
}

/** Takes the parts of an answer until its end, or until the signal aborts. */
async function take(deps: AnswerDeps, answering: Answering, { signal, reply }: Taking): Promise<void> {
  const { session, text } = answering;
  const outputs = deps.provider.answer({
    messages: [...session.messages, { role: 'user', text }],
    definition: session.definition,
    judge: (definition) => deps.judge.judge(definition),
    signal,
  });
  let count = 0;
  for await (const output of untilAborted(outputs, signal, deps.log)) {
    count += 1;
    if (output.kind === 'chunk') reply.text += output.text;
    if (count > mostOutputs || reply.text.length > mostCharacters) throw refusal('ANSWER_LIMIT');
    await pass(deps, answering, { output, signal });
  }
}

/** Passes a part of an answer to the client. */
async function pass(
  { judge }: AnswerDeps,
  { session, client, sendChunk }: Answering,
  { output, signal }: { readonly output: ChatOutput; readonly signal: AbortSignal },
): Promise<void> {
  switch (output.kind) {
    case 'chunk':
      if (output.text !== '') sendChunk(output.text);
      return;
    case 'toolExecuting':
      sendChatEvent(client, 'ToolExecuting', [output.tool, output.arguments]);
      return;
    case 'toolExecuted':
      sendChatEvent(client, 'ToolExecuted', [output.tool, output.error === undefined, output.error ?? null]);
      return;
    case 'definition': {
      const definition = parseDefinition(output.definition);
      const { findings } = await judge.judge(definition);
      if (signal.aborted) return;
      session.change(definition);
      sendChatEvent(client, 'BlueprintUpdated', [definition, presentFindings(findings)]);
    }
  }
}
