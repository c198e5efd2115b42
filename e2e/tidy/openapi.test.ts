import { describe, expect, it } from 'vitest';
import {
  mergeDocuments,
  type OpenApiDocument,
  parseDocument,
  publicDocument,
} from '../../components/gateway/openapi/merge.ts';
import { createIsRouted } from '../../components/gateway/routing/public.ts';
import { openMountedApps, shape } from './mounted.ts';
import { document1 } from './routes/document-1.ts';
import { document2 } from './routes/document-2.ts';
import { document3 } from './routes/document-3.ts';
import type { Component } from './routes/table.ts';

const components: readonly Component[] = ['gateway', 'tenant', 'wallet', 'register', 'validator'];

interface Operation {
  readonly name: string;
  readonly path: string;
  readonly operation: Record<string, unknown>;
}

async function readDocuments(component: Component): Promise<OpenApiDocument[]> {
  const apps = await openMountedApps(component);
  const documents: OpenApiDocument[] = [];
  for (const app of apps) {
    const answer = await app.inject({ url: '/openapi.json' });
    documents.push(
      publicDocument({ service: component, document: parseDocument(answer.json()) }, createIsRouted()),
    );
    await app.close();
  }
  return documents;
}

const merged = mergeDocuments((await Promise.all(components.map(readDocuments))).flat(), {
  title: 't',
  version: '1',
});

const methods = new Set(['get', 'put', 'post', 'delete', 'patch']);
const operations: readonly Operation[] = Object.entries(merged.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => methods.has(method))
    .map(([method, operation]) => ({
      name: `${method} ${path}`,
      path,
      operation: operation as Record<string, unknown>,
    })),
);

describe('OpenAPI of the whole', () => {
  it('examines something', () => {
    expect(operations.length).toBeGreaterThan(30);
  });

  it('refers only to what it contains', () => {
    const refs = [...JSON.stringify(merged).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '');
    const broken = refs.filter((ref) => {
      const [, section = '', name = ''] = /^#\/components\/([^/]+)\/([^/]+)$/.exec(ref) ?? [];
      return merged.components[section]?.[decodeURIComponent(name)] === undefined;
    });
    expect(broken).toEqual([]);
  });

  it('declares every parameter of a path', () => {
    const undeclared = operations.flatMap(({ name, path, operation }) => {
      const parameters = Array.isArray(operation['parameters']) ? operation['parameters'] : [];
      const declared = parameters.map((parameter: { name?: string }) => parameter.name);
      return [...path.matchAll(/\{([^}]*)\}/g)].flatMap(([, named]) =>
        declared.includes(named) ? [] : [`${name}: ${named}`],
      );
    });
    expect(undeclared).toEqual([]);
  });

  it('has answers, and no operation id twice', () => {
    expect(
      operations.filter(({ operation }) => operation['responses'] === undefined).map(({ name }) => name),
    ).toEqual([]);
    const ids = operations.map(({ operation }) => operation['operationId']).filter((id) => id !== undefined);
    expect(ids.filter((id, position) => ids.indexOf(id) !== position)).toEqual([]);
  });

  it('shows every public route that is served, and nothing internal', () => {
    const shown = new Set(operations.map(({ name }) => shape(name)));
    const served = [...document1, ...document2, ...document3].filter((route) => route.status === 'served');
    const isBehindTheGateway = (path: string) => path !== '/alive' && !path.startsWith('/api/internal/');
    const missing = served.filter(
      ({ method, path }) => isBehindTheGateway(path) && !shown.has(shape(`${method.toLowerCase()} ${path}`)),
    );
    expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    expect(
      Object.keys(merged.paths).filter((path) => /\/internal\/|\/persona\/(?:en|de)crypt/.test(path)),
    ).toEqual([]);
  });
});
