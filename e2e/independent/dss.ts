import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Signed, unsignedLists } from '../../components/tenant/trust/lists/testing/xml-cases.ts';
import { execute } from './programs.ts';

/** What `.ci/run` builds of `java/trust-lists`. */
const built = fileURLToPath(new URL('../../dist/java/trust-lists', import.meta.url));

/** Why EU DSS cannot run here; undefined where it runs. */
export function dssAbsence(): string | undefined {
  if (spawnSync('java', ['-version'], { stdio: 'ignore' }).status !== 0) return 'no Java';
  return existsSync(join(built, 'libraries'))
    ? undefined
    : 'java/trust-lists is not built: no Java with Maven';
}

/**
 * Runs the program with EU DSS.
 *
 * @param tasks one line each, as its command takes them
 * @returns the lines of its output
 * @throws Error when it ends with another code than 0
 */
export async function runDss(
  command: 'sign' | 'judge' | 'published',
  tasks: readonly (readonly string[])[],
): Promise<string[]> {
  const path = [join(built, 'classes'), join(built, 'libraries', '*')].join(delimiter);
  const input = tasks.map((task) => `${task.join('\t')}\n`).join('');
  const { code, output } = await execute('java', ['-cp', path, 'trustlists.Main', command], input);
  if (code !== 0) throw new Error(`EU DSS: ${command} ended with ${code}`);
  return output.split('\n').filter((line) => line !== '');
}

/** Lists as EU DSS signs them; it refuses those that their schema does not allow. `dir` becomes the files. */
export async function signByDss(lists: ReturnType<typeof unsignedLists>, dir: string): Promise<Signed[]> {
  const tasks = lists.map(({ version, text, signer }, at) => {
    const file = (ending: string) => join(dir, `unsigned-${at}.${ending}`);
    writeFileSync(file('xml'), text);
    writeFileSync(file('key'), signer.key.export({ type: 'pkcs8', format: 'der' }), { mode: 0o600 });
    writeFileSync(file('der'), signer.der);
    return [`${version}`, file('xml'), file('key'), file('der'), file('signed.xml')];
  });
  await runDss('sign', tasks);
  return lists.map(({ name, signer }, at) => [
    `DSS, ${name}`,
    readFileSync(tasks[at]?.at(-1) ?? '', 'utf8'),
    signer,
  ]);
}
