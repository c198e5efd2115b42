import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { encodeWords } from './encode.ts';
import { listCommonPasswords } from './list.ts';

/** Writes the list of passwords that are refused because attackers try them first. */
const target = new URL('../../components/tenant/sign-in/passwords/common-passwords.txt', import.meta.url);
const own = readFileSync(new URL('./own-words.txt', import.meta.url), 'utf8').split('\n');
const words = await listCommonPasswords(own);
writeFileSync(target, encodeWords(words));
process.stdout.write(`${words.length} passwords in ${fileURLToPath(target)}\n`);
