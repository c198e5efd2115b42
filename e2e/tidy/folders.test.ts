import { describe, expect, it } from 'vitest';
import { mayImport, notImported, packageOwners } from './packages.ts';
import { exists, importsOf, isTest, listFiles, listSources, ownerOf, packageOf } from './repository.ts';

const sources = listSources();
const imports = sources.flatMap((file) => importsOf(file).map((found) => ({ ...found, path: file.path })));

/** Node modules without side effects. */
const pureModules = new Set(['node:buffer', 'node:util']);

const plumbing = ['core', 'kit'];

describe('folders', () => {
  it('examines something', () => {
    expect(sources.length).toBeGreaterThan(100);
    expect(imports.length).toBeGreaterThan(500);
    for (const owner of [
      'core',
      'kit',
      'gateway',
      'tenant',
      'wallet',
      'register',
      'validator',
      'blueprint',
      'credential',
      'standalone',
      'operator',
    ]) {
      expect(sources.filter((file) => ownerOf(file.path) === owner).length, owner).toBeGreaterThan(3);
    }
  });

  it('names in every import a file that exists, with its extension', () => {
    const broken = imports.filter(
      ({ target }) => target !== undefined && !(/\.(?:ts|js|json)$/.test(target) && exists(target)),
    );
    expect(broken.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
  });

  it('leaves a folder only by the aliases', () => {
    const leaving = imports.filter(({ path, specifier, target }) => {
      if (target === undefined || !specifier.startsWith('.') || isTest(path)) return false;
      return ownerOf(target) !== ownerOf(path) && ownerOf(path) !== 'standalone';
    });
    expect(leaving.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
  });

  it('lets no component import another one', () => {
    const crossing = imports.filter(({ path, target }) => {
      const [from, to] = [ownerOf(path), target === undefined ? undefined : ownerOf(target)];
      if (from === undefined || to === undefined || from === to || plumbing.includes(to) || isTest(path))
        return false;
      const composes = /\/(?:compose|config)\.ts$/.test(target ?? '') && !plumbing.includes(from);
      return !(from === 'standalone' && composes);
    });
    expect(crossing.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
  });

  it('keeps core below kit, and kit below the components', () => {
    const upward = imports.filter(({ path, target }) => {
      const [from, to] = [ownerOf(path), target === undefined ? undefined : ownerOf(target)];
      if (from === undefined || to === undefined || isTest(path)) return false;
      return (from === 'core' && to !== 'core') || (from === 'kit' && !plumbing.includes(to));
    });
    expect(upward.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
  });

  it('keeps core pure', () => {
    const core = imports.filter(({ path }) => ownerOf(path) === 'core' && !isTest(path));
    expect(core.length).toBeGreaterThan(20);
    const impure = core.filter(({ path, specifier }) => {
      if (specifier === 'node:crypto') return !path.startsWith('components/core/crypto/');
      if (specifier.startsWith('node:')) return !pureModules.has(specifier);
      const name = packageOf(specifier);
      const pure = /^(?:zod|canonicalize|ajv|ajv-formats|re2js|@noble\/.*|@scure\/.*|@dagrejs\/dagre|dcql)$/;
      return name !== undefined && !pure.test(name);
    });
    expect(impure.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
    const restless = sources.filter(
      (file) =>
        ownerOf(file.path) === 'core' &&
        !isTest(file.path) &&
        /\b(?:Date\.now|Math\.random|performance\.now|new Date\(\)|setTimeout|setInterval|randomBytes|randomUUID)\b/.test(
          file.text,
        ),
    );
    expect(restless.map((file) => file.path)).toEqual([]);
  });

  it('imports packages only where they belong', () => {
    const strangers = imports.filter(({ path, specifier }) => {
      const name = packageOf(specifier);
      return name !== undefined && !isTest(path) && !mayImport(name, path);
    });
    expect(strangers.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
  });

  it('builds queries only where their library belongs', () => {
    const builds = /\.(?:selectFrom|insertInto|updateTable|deleteFrom|mergeInto)\(/;
    const built = sources.filter(({ path, text }) => !isTest(path) && builds.test(text));
    expect(built.length).toBeGreaterThan(20);
    expect(built.filter(({ path }) => !mayImport('kysely', path)).map(({ path }) => path)).toEqual([]);
  });

  it('has an owner for every dependency, and a use', () => {
    const manifest = listFiles('.').find((file) => file.path === 'package.json');
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
      manifest?.text ?? '{}',
    ) as Record<string, Record<string, string>>;
    const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
    expect(names.length).toBeGreaterThan(30);
    const importable = names.filter((name) => !notImported.some((pattern) => pattern.test(name)));
    expect(importable.filter((name) => packageOwners[name] === undefined)).toEqual([]);
    const used = new Set(imports.map(({ specifier }) => packageOf(specifier)));
    expect(
      importable.filter((name) => !used.has(name)),
      'dependencies that nothing imports',
    ).toEqual([]);
    const undeclared = [...used].filter((name) => name !== undefined && !names.includes(name));
    expect(undeclared, 'imported, but no dependency').toEqual([]);
  });

  it('lets end-to-end tests of journeys see public surfaces only', () => {
    const journeys = imports.filter(({ path }) => path.startsWith('e2e/') && !path.startsWith('e2e/tidy/'));
    expect(journeys.length).toBeGreaterThan(10);
    const inside = journeys.filter(({ target }) => {
      const owner = target === undefined ? undefined : ownerOf(target);
      // A journey may replace SPIRE by the issuer of local mode,
      const isIssuer = target === 'components/svid-issuer/compose.ts';
      // start the command line program,
      const isProgram = target === 'components/cli/main.ts';
      // as a benchmark, start the program that grows a register,
      const isGrowth = target === 'components/register/testing/growth/main.ts';
      // and give the same trust lists to the importer and to readers of others.
      const isTrustList = target?.startsWith('components/tenant/trust/lists/testing/') ?? false;
      const mayName = isIssuer || isProgram || isGrowth || isTrustList || owner === 'standalone';
      return owner !== undefined && !mayName && !plumbing.includes(owner);
    });
    expect(inside.map(({ path, specifier }) => `${path} imports ${specifier}`)).toEqual([]);
  });
});
