import { RE2JS } from 're2js';

/** Longest text that patterns and formats are matched against; a longer one matches none. */
export const MAX_MATCHED_LENGTH = 65_536;

interface Pattern {
  /** Whether the pattern is found in a text. */
  readonly test: (text: string) => boolean;
  /** Instructions of its automaton: matching takes at most that many steps a character. */
  readonly size: number;
  /** ajv knows two patterns apart by their texts. */
  readonly toString: () => string;
}

/**
 * Compiles a pattern for matching in linear time. It must be an ECMAScript pattern (with the flag u), as JSON Schema
 * says, and one that re2 takes: no assertions that look around, no references to groups.
 * @returns undefined when it is not both
 */
export function findPattern(source: string): Pattern | undefined {
  try {
    new RegExp(source, 'u');
    const compiled = RE2JS.compile(RE2JS.translateRegExp(source));
    const test = (text: string) => text.length <= MAX_MATCHED_LENGTH && compiled.matcher(text).find();
    return { test, size: compiled.programSize(), toString: () => source };
  } catch {
    // Both report a malformed pattern by throwing; there is no other error for a text.
    return undefined;
  }
}
