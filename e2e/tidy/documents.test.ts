import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listFiles, root } from './repository.ts';

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

/** Numbers of lists, and names of pages, that are not in this repository. */
const foreignCitations = [
  /(?<![%\w])D[1-9]\d{0,2}\b/,
  /\bL-[1-9]\d{0,2}\b/,
  /\bnotes\/[a-z]+/,
  /\b(?:design|decisions|identity|ledger|workflow|libraries|toolchain)\.md\b/,
];
const written = /\.(?:ts|md|py|go|sh|yaml|tpl|proto)$/;

it('code and documents give reasons, or cite what every reader has', () => {
  const folders = ['components', 'operator', 'e2e', 'tools', 'docs', 'charts', 'crds', 'spire', 'protos'];
  const pages = globSync('*.md', { cwd: root }).map((path) => ({
    path,
    text: readFileSync(join(root, path), 'utf8'),
  }));
  const files = [...listFiles(...folders).filter(({ path }) => written.test(path)), ...pages];
  expect(files.length).toBeGreaterThan(1_000);
  const citing = files
    .filter(({ path }) => path !== 'e2e/tidy/documents.test.ts' && !path.includes('/vectors/'))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) => {
        const isCiting = foreignCitations.some((pattern) => pattern.test(line));
        return isCiting ? [`${path}:${index + 1}: ${line.trim()}`] : [];
      }),
    );
  expect(citing).toEqual([]);
});
