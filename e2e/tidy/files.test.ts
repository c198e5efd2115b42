import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lostCauses } from './catches.ts';
import { importsOf, isTest, listFiles, listSources, ownerOf, root, withoutComments } from './repository.ts';

const sources = listSources();
const everything = listFiles('.');
const bannedName = /^(?:util|utils|helper|helpers|common|shared|misc|manager|index)(?:\.|$)/;

const limits = { fileLines: 400, fileLinesP95: 300, functionLines: 70, functionLinesP95: 50 } as const;

/** The 95th percentile. */
function p95(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 0;
}

function lines(text: string): number {
  return text.endsWith('\n') ? text.split('\n').length - 1 : text.split('\n').length;
}

interface Measured {
  readonly path: string;
  readonly lines: number;
}

/** Lines of every function outside tests, as Biome counts them. */
function measureFunctions(): Measured[] {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-tidy-'));
  const rule = { level: 'error', options: { maxLines: 1, skipBlankLines: true } };
  const config = {
    vcs: { enabled: false },
    files: { includes: ['**', '!**/gen/**', '!**/*.test.ts', '!**/*.contract.ts'] },
    formatter: { enabled: false },
    assist: { enabled: false },
    linter: { enabled: true, rules: { preset: 'none', complexity: { noExcessiveLinesPerFunction: rule } } },
  };
  try {
    writeFileSync(join(folder, 'biome.json'), JSON.stringify(config));
    const program = join(root, 'node_modules/.bin/biome');
    const options = [`--config-path=${folder}`, '--max-diagnostics=none', '--reporter=json'];
    return readDiagnostics(runAnyway(program, ['lint', ...options, 'components', 'operator', 'tools']));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Standard output of a program that exits with an error code when it finds something. */
function runAnyway(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { cwd: root, encoding: 'utf8', stdio: 'pipe', maxBuffer: 64_000_000 });
  } catch (error) {
    if (error instanceof Error && 'stdout' in error) return String(error.stdout);
    throw error;
  }
}

function readDiagnostics(report: string): Measured[] {
  const { diagnostics } = JSON.parse(report) as {
    diagnostics: { message: string; location: { path: string } }[];
  };
  return diagnostics.map(({ message, location }) => ({
    path: location.path,
    lines: Number(/too many lines \((\d+)\)/.exec(message)?.[1]),
  }));
}

describe('files', () => {
  it('examines something', () => {
    expect(sources.length).toBeGreaterThan(100);
    expect(everything.length).toBeGreaterThan(sources.length);
  });

  it('has no meaningless name', () => {
    const banned = everything.filter(
      ({ path }) =>
        /^(?:components|e2e|operator|tools)\//.test(path) &&
        path.split('/').some((part) => bannedName.test(part)),
    );
    expect(banned.map((file) => file.path)).toEqual([]);
  });

  it('has names in kebab-case', () => {
    const odd = sources.filter(({ path }) =>
      path.split('/').some((part) => !/^[a-z0-9][a-z0-9.-]*$/.test(part)),
    );
    expect(odd.map((file) => file.path)).toEqual([]);
  });

  it('keeps files short', () => {
    const sizes = sources.map((file) => ({ path: file.path, lines: lines(file.text) }));
    expect(sizes.filter((file) => file.lines > limits.fileLines)).toEqual([]);
    expect(p95(sizes.map((file) => file.lines))).toBeLessThanOrEqual(limits.fileLinesP95);
  });

  it('keeps functions short', () => {
    const functions = measureFunctions();
    expect(functions.length).toBeGreaterThan(500);
    expect(functions.filter((found) => found.lines > limits.functionLines)).toEqual([]);
    expect(p95(functions.map((found) => found.lines))).toBeLessThanOrEqual(limits.functionLinesP95);
  });

  it('suppresses no check', () => {
    const suppression =
      /biome-ignore|@ts-(?:expect-error|ignore|nocheck)|eslint-disable|\bas any\b|<any>|\bas unknown as\b/;
    const others = sources.filter((file) => !file.path.startsWith('e2e/tidy/'));
    expect(others.filter((file) => suppression.test(file.text)).map((file) => file.path)).toEqual([]);
  });

  it('keeps the cause of an error that it throws again', () => {
    expect(
      lostCauses("try { a(); } catch (error) { throw new AppError('internal', 'X', 'y'); }"),
    ).toHaveLength(1);
    expect(
      lostCauses("try { a(); } catch (cause) { throw new AppError('internal', 'X', 'y', { cause }); }"),
    ).toEqual([]);
    const code = sources.filter((file) => !isTest(file.path));
    const lost = code.flatMap((file) =>
      lostCauses(withoutComments(file.text)).map((text) => `${file.path}: ${text}`),
    );
    expect(lost).toEqual([]);
  });

  it('has no marks of unfinished work', () => {
    const words = /\b(?:TODO|FIXME|XXX|HACK|for now|placeholder)\b/i;
    const others = sources.filter((file) => !file.path.startsWith('e2e/tidy/'));
    expect(others.filter((file) => words.test(file.text)).map((file) => file.path)).toEqual([]);
  });

  it('reads the environment in kit/config and kit/lifecycle only', () => {
    const reading = sources.filter(
      (file) =>
        ownerOf(file.path) !== undefined &&
        !/^components\/(?:kit\/(?:config|lifecycle)|standalone)\//.test(file.path) &&
        !isTest(file.path) &&
        /\bprocess\.env\b|\benv\b[^'"]*from 'node:process'/.test(withoutComments(file.text)),
    );
    expect(reading.map((file) => file.path)).toEqual([]);
  });

  it('builds subjects of the bus in core/events only', () => {
    const quoting = sources.filter(
      (file) =>
        !file.path.startsWith('components/core/events/') &&
        !isTest(file.path) &&
        /['"`]doorbell\./.test(withoutComments(file.text)),
    );
    expect(quoting.map((file) => file.path)).toEqual([]);
    const subjects = sources.filter(
      (file) => file.path.startsWith('components/core/events/') && /doorbell\./.test(file.text),
    );
    expect(subjects.length).toBeGreaterThan(0);
  });

  it('keeps no state in modules', () => {
    const state =
      /^(?:export )?(?:let |var |const \w+(?:: [^=\n]+)? = new (?:Map|Set|WeakMap|WeakSet|Array)(?:<[^\n]*>)?\(\))/m;
    const code = sources.filter((file) => !isTest(file.path));
    expect(code.filter((file) => state.test(file.text)).map((file) => file.path)).toEqual([]);
  });

  it('documents the public functions of core and kit', () => {
    const plumbing = sources.filter(({ path }) => /^components\/(?:core|kit)\//.test(path) && !isTest(path));
    const exported = plumbing.flatMap((file) =>
      [...file.text.matchAll(/(^.*\n)?^export (?:async )?function\*? (\w+)/gm)].map((match) => ({
        documented: (match[1] ?? '').trim().endsWith('*/'),
        overload: (match[1] ?? '').startsWith('export function'),
        name: `${file.path} ${match[2]}`,
      })),
    );
    expect(exported.length).toBeGreaterThan(100);
    const bare = exported.filter((found) => !found.documented && !found.overload).map((found) => found.name);
    expect(bare).toEqual([]);
  });

  it('names no machine and no package registry', () => {
    const machine =
      /(?:^|[\s'"`(=])\/(?:home|Users|root|work)\/[a-z]|registry\.npmjs\.org|npm\.pkg\.github|verdaccio|artifactory/m;
    const examined = everything.filter(
      ({ path }) => path !== 'package-lock.json' && !path.startsWith('e2e/tidy/') && path !== 'LICENSE',
    );
    expect(examined.filter((file) => machine.test(file.text)).map((file) => file.path)).toEqual([]);
    const lock = everything.find((file) => file.path === 'package-lock.json');
    expect(lock).toBeDefined();
    const hosts = new Set(
      [...(lock?.text ?? '').matchAll(/"resolved": "https?:\/\/([^/"]+)/g)].map((match) => match[1]),
    );
    expect([...hosts].filter((host) => host !== 'registry.npmjs.org')).toEqual([]);
  });

  it('has no dead file', () => {
    const manifest = everything.find((file) => file.path === 'package.json');
    const named = new Set([...(manifest?.text ?? '').matchAll(/[\w./-]+\.ts/g)].map((match) => match[0]));
    for (const file of everything.filter(
      ({ path }) => path === 'Makefile' || path === 'vitest.config.ts' || path.startsWith('.ci/'),
    )) {
      for (const match of file.text.matchAll(/[\w./-]+\.ts/g)) named.add(match[0]);
    }
    const imported = new Set(sources.flatMap((file) => importsOf(file).map((found) => found.target)));
    const isEntry = (path: string) =>
      /(?:^|\/)(?:main|http)\.ts$/.test(path) ||
      /\.(?:test|setup)\.ts$/.test(path) ||
      named.has(path) ||
      namedByText(path);
    const dead = sources.filter((file) => !imported.has(file.path) && !isEntry(file.path));
    expect(dead.map((file) => file.path)).toEqual([]);
  });
});

/** Workers and child processes are started by file name. */
function namedByText(path: string): boolean {
  const name = path.split('/').at(-1) ?? path;
  const folder = path.slice(0, -name.length);
  return sources.some(
    (file) => file.path.startsWith(folder) && file.path !== path && file.text.includes(`'./${name}'`),
  );
}
