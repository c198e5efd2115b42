import { readFileSync } from 'node:fs';

/** Passwords that attackers try first, in lower case; `npm run gen` writes the list. */
export function readCommonPasswords(): ReadonlySet<string> {
  const text = readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8');
  const words = new Set<string>();
  let before = '';
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    before = before.slice(0, Number.parseInt(line[0] ?? '', 36)) + line.slice(1);
    words.add(before);
  }
  return words;
}
