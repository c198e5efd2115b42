import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from './repository.ts';

const documents = ['ARCHITECTURE.md', ...globSync('docs/**/*.md', { cwd: root })];
/** Top-level folders: a path that begins with one of them is a path of this repository. */
const inRepository = /^(?:components|operator|crds|charts|protos|spire|e2e|tools|docs)\//;

interface NamedPath {
  readonly document: string;
  readonly path: string;
}

function namedPaths(document: string): readonly NamedPath[] {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/`([^`\s]+)`/g)]
    .flatMap(([, path = '']) => alternatives(path))
    .filter((path) => inRepository.test(path))
    .map((path) => ({ document, path }));
}

/** `a/{b,c}/d` names two paths. */
function alternatives(path: string): readonly string[] {
  const [whole, inner = ''] = /\{([^}]*)\}/.exec(path) ?? [];
  return whole === undefined ? [path] : inner.split(',').map((one) => path.replace(whole, one));
}

it('documents name files and folders that exist', () => {
  const named = documents.flatMap(namedPaths);
  expect(named.length).toBeGreaterThan(200);
  const missing = named.filter(({ path }) =>
    path.includes('*')
      ? globSync(path, { cwd: root }).length === 0
      : !existsSync(join(root, path)) && globSync(`${path}.*`, { cwd: root }).length === 0,
  );
  expect(missing).toEqual([]);
});
