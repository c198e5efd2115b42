import { importsOf, isTest, listFiles, type RepositoryFile, withoutComments } from './repository.ts';

/** An exported name. */
export interface ExportedName {
  readonly path: string;
  readonly name: string;
  readonly kind: 'value' | 'type';
}

const declared =
  /^export (?:declare )?(?:abstract )?(async function\*?|function\*?|const|let|class|interface|type) +([A-Za-z_$][\w$]*)/gm;
const listedNames = /^export (type )?\{([^}]*)\}(?: from)?/gm;
const importedNames = /\b(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*'([^']+)'/g;
const wholeModules = /\bimport\s+(?:type\s+)?\*\s+as\s+\w+\s+from\s*'([^']+)'|\bimport\(\s*['`]([^'`]+)['`]/g;

/** Exported names of production code that no other file imports, and values that only tests use. */
export interface UnusedExports {
  readonly unused: readonly ExportedName[];
  readonly onlyInTests: readonly ExportedName[];
}

/** Reads every TypeScript file of the repository. Modules that are imported whole count as used in every name. */
export function findUnusedExports(): UnusedExports {
  const files = listFiles('components', 'e2e', 'operator', 'tools').filter(({ path }) =>
    path.endsWith('.ts'),
  );
  const production = new Set<string>();
  const tests = new Set<string>();
  for (const file of files) {
    const used = isTest(file.path) ? tests : production;
    for (const name of usesOf(file)) used.add(name);
  }
  const isIn = (uses: ReadonlySet<string>, { path, name }: ExportedName): boolean =>
    uses.has(`${path}#${name}`) || uses.has(`${path}#*`);
  const exported = files.filter(({ path }) => !isTest(path)).flatMap(exportsOf);
  const idle = exported.filter((one) => !isIn(production, one));
  const texts = new Map(files.map(({ path, text }) => [path, withoutComments(text)]));
  const isUsedInside = ({ path, name }: ExportedName): boolean =>
    (texts.get(path)?.match(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`, 'g')) ?? [])
      .length > 1;
  return {
    unused: idle.filter((one) => !isIn(tests, one)),
    onlyInTests: idle.filter((one) => isIn(tests, one) && one.kind === 'value' && !isUsedInside(one)),
  };
}

function exportsOf({ path, text }: RepositoryFile): ExportedName[] {
  const code = withoutComments(text);
  const direct = [...code.matchAll(declared)].map(([, word = '', name = '']): ExportedName => {
    return { path, name, kind: word === 'interface' || word === 'type' ? 'type' : 'value' };
  });
  const listed = [...code.matchAll(listedNames)].flatMap(([, typeOnly, names = '']) =>
    namesIn(names).map(({ local, isType }): ExportedName => {
      return { path, name: local, kind: typeOnly !== undefined || isType ? 'type' : 'value' };
    }),
  );
  return [...direct, ...listed];
}

/** `path#name` of each name that a file imports from a file of the repository. */
function usesOf(file: RepositoryFile): string[] {
  const targets = new Map(importsOf(file).map(({ specifier, target }) => [specifier, target]));
  const code = withoutComments(file.text);
  const named = [...code.matchAll(importedNames)].flatMap(([, names = '', specifier = '']) =>
    namesIn(names).map(({ imported }) => `${targets.get(specifier) ?? specifier}#${imported}`),
  );
  const whole = [...code.matchAll(wholeModules)].map(([, first, second]) => {
    const specifier = first ?? second ?? '';
    return `${targets.get(specifier) ?? specifier}#*`;
  });
  return [...named, ...whole];
}

/** Names of a list in braces: `a as b` imports `a` and is known as `b`. */
function namesIn(list: string): { imported: string; local: string; isType: boolean }[] {
  return list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const [, type, imported = '', local] = /^(type\s+)?([\w$]+)(?:\s+as\s+([\w$]+))?$/.exec(part) ?? [];
      return { imported, local: local ?? imported, isType: type !== undefined };
    });
}
