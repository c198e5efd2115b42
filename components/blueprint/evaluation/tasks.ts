import type { PayloadError } from '#core/blueprint/schemas/compile.ts';
import { type JsonObject, scanJson, toValue } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import {
  compileDefinition,
  type EarlierData,
  findAction,
  nothingEarlier,
  type TriedAction,
  tryAction,
  validatePayload,
} from './action.ts';
import { type Exported, type ExportFormat, exportDefinition } from './export.ts';
import { type Judged, judgeDefinition } from './judge.ts';

/** What a helper is asked about an action. */
export interface Question {
  readonly actionId: number;
  readonly data: JsonObject;
  /** Whether data matches the schemas, or what it makes of the action. */
  readonly ask: 'validate' | 'try';
  /** Nothing when absent. */
  readonly earlier?: EarlierData;
}

/** The answer about an action. */
export type Answered =
  | { readonly kind: 'errors'; readonly errors: readonly PayloadError[] }
  | { readonly kind: 'tried'; readonly tried: TriedAction }
  | { readonly kind: 'noDefinition' }
  | { readonly kind: 'noAction' }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/** What a thread does with a definition, as JSON text. */
export type Task = { readonly definition: string } & (
  | { readonly kind: 'judge'; readonly credentials: boolean }
  | { readonly kind: 'answer'; readonly question: Question }
  | { readonly kind: 'export'; readonly format: ExportFormat }
);

/** Runs a task; the answer is JSON. */
export function runTask(task: Task): Judged | Answered | Exported {
  if (task.kind === 'judge') return judgeDefinition(task.definition, task.credentials);
  if (task.kind === 'export') return exportDefinition(task.definition, task.format);
  return answerQuestion(compileDefinition(toValue(scanJson(task.definition)) as JsonObject), task.question);
}

/** Answers about an action of a definition; what the definition or the data does wrong is an answer, too. */
export function answerQuestion(
  compiled: ReturnType<typeof compileDefinition>,
  { actionId, data, ask, earlier = nothingEarlier }: Question,
): Answered {
  if (compiled === undefined) return { kind: 'noDefinition' };
  const action = findAction(compiled, actionId);
  if (action === undefined) return { kind: 'noAction' };
  try {
    return ask === 'validate'
      ? { kind: 'errors', errors: validatePayload(compiled, action, { ...earlier.prefill, ...data }) }
      : { kind: 'tried', tried: tryAction(compiled, action, data, earlier) };
  } catch (error) {
    if (!isAppError(error, 'unprocessable')) throw error;
    return { kind: 'refused', code: error.code, message: error.message };
  }
}
