import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root of the repository. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

const skippedFolders = new Set(['node_modules', '.git', '.chancery', '.bench', 'gen', 'dist', 'coverage']);

export interface RepositoryFile {
  /** From the root, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  /** Path of the file it names, for relative and aliased imports. */
  readonly target: string | undefined;
}

/** Every written file below some folders of the repository, by path; binary files are left out. */
export function listFiles(...folders: readonly string[]): RepositoryFile[] {
  return folders.flatMap((folder) => (existsSync(join(root, folder)) ? walk(folder) : []));
}

/** Every written TypeScript file. */
export function listSources(): RepositoryFile[] {
  return listFiles('components', 'e2e', 'operator', 'tools').filter((file) => file.path.endsWith('.ts'));
}

function walk(folder: string): RepositoryFile[] {
  return readdirSync(join(root, folder)).flatMap((name) => {
    const path = folder === '.' ? name : posix.join(folder, name);
    const stats = statSync(join(root, path), { throwIfNoEntry: false });
    if (stats === undefined) return [];
    if (stats.isDirectory()) return skippedFolders.has(name) ? [] : walk(path);
    if (!stats.isFile() || stats.size > 4_000_000) return [];
    const bytes = readFileSync(join(root, path));
    return bytes.includes(0) ? [] : [{ path, text: bytes.toString('utf8') }];
  });
}

export function isTest(path: string): boolean {
  return (
    /\.(?:test|contract|setup|fixture)\.ts$/.test(path) ||
    /\/(?:testing|vectors)\//.test(path) ||
    path.startsWith('e2e/')
  );
}

/** The component (or `core`, `kit`, `operator`) a file belongs to; undefined for everything else. */
export function ownerOf(path: string): string | undefined {
  const [top, owner, ...rest] = path.split('/');
  if (top === 'operator') return top;
  return top === 'components' && rest.length > 0 ? owner : undefined;
}

const importForms = [
  /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*'([^']+)'/gm,
  /^\s*import\s*'([^']+)'/gm,
  /\bimport\(\s*['`]([^'`$]+)['`]\s*\)/g,
  /\b(?:require|createRequire\(import\.meta\.url\))\('([^']+)'\)/g,
  /new URL\(\s*'(\.[^']+\.ts)'\s*,\s*import\.meta\.url/g,
];

/** The imports of a file: static, dynamic, re-exported, and worker files named by `new URL(..., import.meta.url)`. */
export function importsOf(file: RepositoryFile): Import[] {
  const code = withoutComments(file.text);
  const specifiers = importForms.flatMap((form) => [...code.matchAll(form)].map((match) => match[1] ?? ''));
  return specifiers.map((specifier) => ({ specifier, target: resolve(file.path, specifier) }));
}

const aliases: Readonly<Record<string, string>> = {
  '#core/': 'components/core/',
  '#kit/': 'components/kit/',
  '#protos/': 'protos/',
};

function resolve(from: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.normalize(posix.join(posix.dirname(from), specifier));
  const alias = Object.keys(aliases).find((prefix) => specifier.startsWith(prefix));
  return alias === undefined ? undefined : (aliases[alias] ?? '') + specifier.slice(alias.length);
}

export function exists(path: string): boolean {
  return existsSync(join(root, path));
}

/** Text with comments blanked out; sufficient for formatted files. */
export function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^(\s*)\/\/.*$/gm, '$1');
}

/** The npm package of a specifier; undefined for relative, aliased and node: ones. */
export function packageOf(specifier: string): string | undefined {
  if (/^(?:\.|#|node:)/.test(specifier)) return undefined;
  const [first = '', second = ''] = specifier.split('/');
  return first.startsWith('@') ? `${first}/${second}` : first;
}
