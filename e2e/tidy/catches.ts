/**
 * Finds `catch (name) {...}` blocks that throw a new error without its cause. Biome's useErrorCause looks for the cause
 * in the second argument only, while AppError has it elsewhere.
 */
export function lostCauses(code: string): string[] {
  const found: string[] = [];
  for (const match of code.matchAll(/\bcatch\s*\([^)]*\)\s*\{/g)) {
    const block = enclosed(code, (match.index ?? 0) + match[0].length - 1, '{', '}');
    for (const thrown of block.matchAll(/\bthrow new \w+\(/g)) {
      const call = enclosed(block, (thrown.index ?? 0) + thrown[0].length - 1, '(', ')');
      if (!/\bcause\b/.test(call)) found.push(thrown[0] + call);
    }
  }
  return found;
}

function enclosed(text: string, start: number, open: string, close: string): string {
  let depth = 0;
  for (let position = start; position < text.length; position++) {
    if (text[position] === open) depth++;
    if (text[position] === close) depth--;
    if (depth === 0) return text.slice(start + 1, position);
  }
  return text.slice(start + 1);
}
