import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type OutputBundle, type Plugin, rolldown } from 'rolldown';
import type { TarEntry } from '../oci/tar.ts';
import { fileEntry } from './tree.ts';

export interface Bundle {
  /** Files below `app/`, among them main.js. */
  readonly files: readonly TarEntry[];
  /** Packages that the bundle loads at run time. */
  readonly outside: readonly string[];
  /** The files that it was made from. */
  readonly sources: readonly string[];
}

/** Packages that find files beside themselves, so that they only work as they were installed. */
const notBundled = ['@fastify/swagger-ui', 'sodium-native'];

const workerForm = /new URL\(\s*'(\.[^']+)\.ts'\s*,\s*import\.meta\.url\s*\)/g;
/** Files that a program reads from beside itself. */
const fileForm = /new URL\(\s*'(\.[^']+\.(?:html|css|js|txt))'\s*,\s*import\.meta\.url\s*\)/g;
const requireForm = /createRequire\(import\.meta\.url\)\('([^']+)'\)/g;

/** One file for a program and one for each of its lazy parts and worker threads, all in one folder. */
export async function bundleProgram(root: string, main: string): Promise<Bundle> {
  const outside = new Set<string>();
  const bundle = await rolldown({
    cwd: root,
    input: { main },
    platform: 'node',
    external: (id) => {
      if (!notBundled.includes(id)) return false;
      outside.add(id);
      return true;
    },
    plugins: [filesByUrl(outside)],
    onLog: (level, log, handle) => {
      if (log.code !== 'EVAL' && level === 'warn') handle(level, log);
    },
  });
  try {
    const { output } = await bundle.generate({
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
      minify: { mangle: false, compress: true, codegen: { removeWhitespace: true } },
    });
    const sources = await bundle.watchFiles;
    return { files: output.map(toEntry), outside: [...outside].sort(), sources };
  } finally {
    await bundle.close();
  }
}

function toEntry(part: OutputBundle[string]): TarEntry {
  return fileEntry(`app/${part.fileName}`, part.type === 'chunk' ? part.code : part.source);
}

/** Bundles modules that are named by URL for a worker thread, and notes packages that are required by name. */
function filesByUrl(outside: Set<string>): Plugin {
  return {
    name: 'files-by-url',
    transform: {
      filter: { code: /import\.meta\.url/ },
      handler(code, id) {
        for (const [, name = ''] of code.matchAll(requireForm)) outside.add(name);
        if (!code.includes('new URL(')) return undefined;
        const withFiles = code.replaceAll(fileForm, (_, path: string) => {
          const file = resolve(dirname(id), path);
          this.addWatchFile(file);
          const fileName = `files/${basename(path)}`;
          this.emitFile({ type: 'asset', fileName, source: readFileSync(file) });
          return `new URL('./${fileName}', import.meta.url)`;
        });
        return withFiles.replaceAll(workerForm, (_, path: string) => {
          const name = basename(path);
          this.emitFile({
            type: 'chunk',
            id: resolve(dirname(id), `${path}.ts`),
            name,
            fileName: `${name}.js`,
          });
          return `new URL('./${name}.js', import.meta.url)`;
        });
      },
    },
  };
}
