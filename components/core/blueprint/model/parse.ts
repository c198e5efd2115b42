import type { z } from 'zod';
import { canonicalBytes } from '../../encoding/jcs.ts';
import { isJsonObject } from '../../encoding/json.ts';
import { isAppError } from '../../errors/errors.ts';
import { jsonPointer, MAX_BLUEPRINT_BYTES } from '../members.ts';
import { type Blueprint, blueprintModel } from './blueprint.ts';
import { errorAt, type Finding } from './finding.ts';

type Issue = z.core.$ZodIssue;

/** Findings in one answer; a definition with more faults than that is no definition. */
const MAX_FINDINGS = 200;

/** Codes of the members that the ledger cannot do without; all others have VAL_BP_FIELD. */
const CODES: Readonly<Record<string, string>> = {
  title: 'VAL_BP_001',
  description: 'VAL_BP_001',
  participants: 'VAL_BP_002',
  actions: 'VAL_BP_003',
};

/** Extensions may be members of every object. */
function isExtension(name: string): boolean {
  return name.startsWith('x-');
}

function findingsOf(issue: Issue): Finding[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    return issue.keys
      .filter((name) => !isExtension(name))
      .map((name) =>
        errorAt(
          jsonPointer([...path, name]),
          'VAL_BP_UNKNOWN_FIELD',
          `Member ${JSON.stringify(name.slice(0, 100))} does not exist here; extensions begin with "x-"`,
        ),
      );
  }
  const code = path.length === 1 ? CODES[String(path[0])] : undefined;
  return [errorAt(jsonPointer(path), code ?? 'VAL_BP_FIELD', `Invalid value: ${issue.message}`)];
}

function judgeSize(value: unknown): Finding[] {
  try {
    if (canonicalBytes(value).length <= MAX_BLUEPRINT_BYTES) return [];
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    return [errorAt('', 'VAL_BP_JSON', error.message)];
  }
  const message = `The definition has more than ${MAX_BLUEPRINT_BYTES} bytes of canonical JSON`;
  return [errorAt('', 'VAL_BP_SIZE', message)];
}

/** Members named __proto__, which programs that copy objects lose or obey. */
function findPrototypes(value: unknown, path: readonly (string | number)[]): Finding[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => findPrototypes(item, [...path, index]));
  if (!isJsonObject(value)) return [];
  return Object.keys(value).flatMap((name) =>
    name === '__proto__'
      ? [errorAt(jsonPointer([...path, name]), 'VAL_BP_UNKNOWN_FIELD', 'No member may be named __proto__')]
      : findPrototypes(value[name], [...path, name]),
  );
}

/**
 * Parses a definition: members, types and bounds. What the members mean together is judged by judgeBlueprint.
 * @param value JSON data; texts are read with scanJson, which refuses duplicate member names
 * @returns the value itself, or what is wrong with it
 */
export function parseBlueprint(
  value: unknown,
): { readonly blueprint: Blueprint } | { readonly findings: readonly Finding[] } {
  const size = judgeSize(value);
  if (size.length > 0) return { findings: size };
  const issues = blueprintModel.safeParse(value).error?.issues ?? [];
  const findings = [...findPrototypes(value, []), ...issues.flatMap(findingsOf)];
  if (findings.length > 0) return { findings: findings.slice(0, MAX_FINDINGS) };
  // The input, not the parsed copy: it has the extensions, and its hashes are those of what was sent.
  return { blueprint: value as Blueprint };
}
