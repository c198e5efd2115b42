import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Counts, countsOf, type Ended, execute } from '../programs.ts';

const sources = fileURLToPath(new URL('./typescript', import.meta.url));
const folder = fileURLToPath(new URL('../../../dist/openapi-typescript', import.meta.url));

/**
 * The document of an installation in the hands of TypeScript programs: redocly lints it, openapi-typescript makes types
 * of it, TypeScript compiles a journey against them, and openapi-fetch performs it.
 *
 * @param account e-mail and password file of an administrator
 */
export async function readWithTypeScript(gatewayUrl: string, account: readonly string[]): Promise<Counts[]> {
  mkdirSync(folder, { recursive: true });
  cpSync(sources, folder, { recursive: true });
  const answer = await fetch(`${gatewayUrl}/openapi.json`);
  const document = join(folder, 'openapi.json');
  writeFileSync(document, await answer.text());
  await execute('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts']);
  const run = (program: string, ...args: readonly string[]) =>
    execute(process.execPath, [join(folder, 'node_modules', program), ...args]);
  const types = join(folder, 'api.d.ts');
  const steps: readonly (readonly [string, () => Promise<Ended>])[] = [
    [
      'redocly lints the document',
      () => run('@redocly/cli/bin/cli.js', 'lint', document, '--config', join(folder, 'redocly.yaml')),
    ],
    [
      'openapi-typescript makes types of it',
      () =>
        run(
          'openapi-typescript/bin/cli.js',
          document,
          '--output',
          types,
          '--redocly',
          join(folder, 'redocly.yaml'),
        ),
    ],
    ['TypeScript compiles a journey against them', () => run('typescript/bin/tsc', '--project', folder)],
  ];
  const outcomes: Counts[] = [];
  for (const [name, step] of steps) outcomes.push(outcomeOf(name, await step()));
  const walk = await execute(process.execPath, [join(folder, 'walk.mts'), document, gatewayUrl, ...account]);
  return [...outcomes, countsOf('openapi/typescript/walk.mts', walk)];
}

function outcomeOf(name: string, { code, output }: Ended): Counts {
  const holds = code === 0;
  process.stdout.write(`  ${holds ? 'ok  ' : 'FAIL'} ${name}${holds ? '' : `\n${output.slice(-4_000)}`}\n`);
  return holds ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}
