import { execDefHash } from '#core/blueprint/hashes.ts';
import type { Finding } from '#core/blueprint/model/finding.ts';
import { judgeDraft } from '#core/blueprint/rules/draft.ts';
import { type JsonObject, scanJson, toValue } from '#core/encoding/json.ts';

/** What a check of a definition found. */
export interface Judged {
  readonly findings: readonly Finding[];
  /** The definition as it is published, its references resolved; absent when it has errors. */
  readonly definition?: JsonObject;
  readonly execDefHash: string;
}

/** Whether a definition may be published: it has no errors. */
export function isPublishable(judged: Judged): judged is Judged & { readonly definition: JsonObject } {
  return judged.definition !== undefined;
}

/** Judges a definition by every rule of publishing. The time that it takes depends on the definition. */
export function judgeDefinition(text: string, credentials: boolean): Judged {
  const { findings, result } = judgeDraft(text, { credentials });
  const hasErrors = findings.some(({ severity }) => severity === 'Error');
  const hash = result?.execDefHash ?? execDefHash(toValue(scanJson(text)) as JsonObject);
  return { findings, execDefHash: hash, ...(!hasErrors && result && { definition: result.definition }) };
}
