import { type JsonObject, scanJson, toValue } from '../../encoding/json.ts';
import { isAppError } from '../../errors/errors.ts';
import { contentHash, execDefHash, structuralHash } from '../hashes.ts';
import { errorAt, type Finding } from '../model/finding.ts';
import { parseBlueprint } from '../model/parse.ts';
import { flattenSchemas } from '../schemas/flatten.ts';
import { type JudgeOptions, judgeBlueprint } from './judge.ts';

/** What a draft is worth: its findings and, when it can be parsed, what would be published. */
interface DraftJudgement {
  readonly findings: readonly Finding[];
  /** Absent when the draft is no definition. */
  readonly result?: {
    /** The definition with the shared schemas copied into its actions: the form that is published. */
    readonly definition: JsonObject;
    readonly contentHash: string;
    readonly execDefHash: string;
    readonly structuralHash: string;
  };
}

function read(
  text: string | Uint8Array,
): { readonly value: unknown } | { readonly findings: readonly Finding[] } {
  try {
    return { value: toValue(scanJson(text)) };
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    return { findings: [errorAt('', 'VAL_BP_JSON', error.message)] };
  }
}

/**
 * Judges a draft from its JSON text. The work is bounded by the size of a definition, but a caller that takes drafts from
 * clients runs it where it can be ended. Input and answer can be passed between threads.
 */
export function judgeDraft(text: string | Uint8Array, options: JudgeOptions): DraftJudgement {
  const given = read(text);
  const parsed = 'value' in given ? parseBlueprint(given.value) : given;
  if ('findings' in parsed) return { findings: parsed.findings };
  const definition = flattenSchemas(parsed.blueprint).blueprint;
  return {
    findings: judgeBlueprint(parsed.blueprint, options),
    result: {
      definition,
      contentHash: contentHash(definition),
      execDefHash: execDefHash(definition),
      structuralHash: structuralHash(definition),
    },
  };
}
