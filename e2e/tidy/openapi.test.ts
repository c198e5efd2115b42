import { describe, expect, it } from 'vitest';
import { listServices } from '#core/identity/services.ts';
import {
  mergeDocuments,
  type OpenApiDocument,
  parseDocument,
  publicDocument,
} from '../../components/gateway/openapi/merge.ts';
import { createIsRouted } from '../../components/gateway/routing/public.ts';
import { routingTableOf } from '../../components/gateway/routing/table.ts';
import { openMountedApps, shape } from './mounted.ts';
import { document1 } from './routes/document-1.ts';
import { document2 } from './routes/document-2.ts';
import { document3 } from './routes/document-3.ts';
import type { Component } from './routes/table.ts';

const components: readonly Component[] = [
  'gateway',
  'tenant',
  'wallet',
  'register',
  'validator',
  'blueprint',
  'credential',
];
const isRouted = createIsRouted(routingTableOf(listServices()));

interface Operation {
  readonly name: string;
  readonly path: string;
  readonly operation: Record<string, unknown>;
}

/** Verbs of operations. Add one only when none of these fits. */
const verbs = new Set(
  (
    'add approve attest build cancel change check classify count create decrypt delete destroy disable dismiss drain enact ' +
    'encrypt ensure execute export finalize get grant import initiate introspect issue list mark mint pause propose publish ' +
    'recover refresh register reinstate reject release remove report resolve resume revoke rotate seal sign start stop store ' +
    'submit suspend switch reactivate undrain unlock update upsert validate verify vote'
  ).split(' '),
);

function isOperationId(id: string): boolean {
  const [, verb = ''] = /^([a-z]+)(?:[A-Z][a-z0-9]*)+$/.exec(id) ?? [];
  return verbs.has(verb);
}

/** The documents that a component itself serves. */
async function readInternal(component: Component): Promise<OpenApiDocument[]> {
  const apps = await openMountedApps(component);
  return Promise.all(
    apps.map(async (app) => {
      const answer = await app.inject({ url: '/openapi.json' });
      await app.close();
      return parseDocument(answer.json());
    }),
  );
}

async function readDocuments(component: Component): Promise<OpenApiDocument[]> {
  const apps = await openMountedApps(component);
  const documents: OpenApiDocument[] = [];
  for (const app of apps) {
    const answer = await app.inject({ url: '/openapi.json' });
    documents.push(publicDocument({ service: component, document: parseDocument(answer.json()) }, isRouted));
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

type Members = Readonly<Record<string, unknown>>;

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every object of a JSON value, with the names that lead to it. */
function objectsOf(value: unknown, path: readonly string[] = []): (readonly [readonly string[], Members])[] {
  if (Array.isArray(value)) return value.flatMap((item, place) => objectsOf(item, [...path, String(place)]));
  if (!isMembers(value)) return [];
  const inside = Object.entries(value).flatMap(([name, member]) => objectsOf(member, [...path, name]));
  return [[path, value], ...inside];
}

/** Every service's own document, with the routes that the gateway does not serve. */
const internals = await Promise.all([...components, 'svid-issuer' as const].map(readInternal));
const everything: readonly (readonly [readonly string[], Members])[] = [
  ...objectsOf(merged),
  ...internals.flat().flatMap((document) => objectsOf(document)),
];

describe('the merged OpenAPI document', () => {
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

  it('names each operation once, by a verb and a noun', () => {
    const ids = operations.map(({ operation }) => String(operation['operationId']));
    expect(ids.filter((id, position) => ids.indexOf(id) !== position)).toEqual([]);
    expect(ids.filter((id) => !isOperationId(id))).toEqual([]);
  });

  it('describes the success of each operation', () => {
    const without = operations.filter(({ operation }) => {
      const statuses = Object.keys(operation['responses'] ?? {});
      return !statuses.some((status) => /^[23]\d\d$/.test(status));
    });
    // It answers 501 in any case.
    expect(without.map(({ name }) => name)).toEqual(['post /odata/$batch']);
  });

  it('describes every member of each answer in JSON, and has an example of each body', () => {
    const open = everything.filter(
      ([path, schema]) =>
        path.includes('responses') &&
        path.at(-1) === 'schema' &&
        !('$ref' in schema) &&
        !['type', 'anyOf', 'oneOf', 'allOf', 'const', 'enum'].some((name) => name in schema),
    );
    expect(open.map(([path]) => path.join(' '))).toEqual([]);
    const bodies = operations.flatMap(({ name, operation }) => {
      const content = (operation['requestBody'] as Members | undefined)?.['content'];
      return isMembers(content) ? Object.values(content).map((media) => [name, media] as const) : [];
    });
    expect(bodies.length).toBeGreaterThan(40);
    expect(
      bodies.filter(([, media]) => !JSON.stringify(media).includes('"example')).map(([name]) => name),
    ).toEqual([]);
  });

  it('answers refusals with one schema of problems', () => {
    const others = operations.filter(
      ({ operation }) =>
        JSON.stringify((operation['responses'] as Members)['default']) !==
        JSON.stringify({
          description: 'Refusal',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        }),
    );
    expect(others.map(({ name }) => name)).toEqual([]);
    expect(
      Object.keys(merged.components['schemas'] ?? {}).filter((name) => /Problem|Input$/.test(name)),
    ).toEqual(['Problem']);
  });

  it('shows every public route that is served, and nothing internal', () => {
    const shown = new Set(operations.map(({ name }) => shape(name)));
    const served = [...document1, ...document2, ...document3].filter((route) => route.status === 'served');
    // SignalR describes hubs.
    const isBehindTheGateway = (path: string) => !/^\/(?:alive$|api\/internal\/|hubs\/)/.test(path);
    const missing = served.filter(
      ({ method, path }) => isBehindTheGateway(path) && !shown.has(shape(`${method.toLowerCase()} ${path}`)),
    );
    expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    expect(
      Object.keys(merged.paths).filter((path) => /\/internal\/|\/persona\/(?:en|de)crypt/.test(path)),
    ).toEqual([]);
  });
});

describe('OpenAPI for programs in any language', () => {
  const patterns = everything.flatMap(([path, { pattern }]) =>
    typeof pattern === 'string' ? [{ at: path.join('/'), pattern }] : [],
  );

  it('has patterns that ECMA-262 reads', () => {
    expect(patterns.length).toBeGreaterThan(20);
    for (const { pattern } of patterns) expect(() => new RegExp(pattern, 'u')).not.toThrow();
  });

  it.each([
    ['Unicode properties', /\\[pP]\{/],
    ['escaped slashes', /(?<!\\)(?:\\\\)*\\\//],
    ['groups other than (...) and (?:...)', /\(\?(?!:)/],
    ['escapes that mean something else elsewhere', /\\[ckUzZAGKQE]|\\u(?![0-9a-f]{4})/],
    ['possessive or atomic repetition', /[*+?}]\+/],
  ])('has no patterns with %s', (_name, refused) => {
    expect(patterns.filter(({ pattern }) => refused.test(pattern))).toEqual([]);
  });

  it('has no pattern beside a format that makes a value something other than text', () => {
    const formats = ['uuid', 'date', 'date-time'];
    const both = everything.filter(
      ([, { format, pattern }]) => formats.includes(String(format)) && pattern !== undefined,
    );
    expect(both.map(([path]) => path.join('/'))).toEqual([]);
    expect(everything.filter(([, { format }]) => format === 'uuid').length).toBeGreaterThan(20);
  });

  it('has null only beside another type', () => {
    const bare = everything.filter(
      ([path, { type }]) => type === 'null' && !['anyOf', 'oneOf'].includes(path.at(-2) ?? ''),
    );
    expect(bare.map(([path]) => path.join('/'))).toEqual([]);
  });

  it('names the requirements of every request', () => {
    const bodies = everything.filter(([path]) => path.includes('requestBody') && path.at(-1) === 'schema');
    expect(bodies.length).toBeGreaterThan(40);
    const empty = bodies.filter(([, schema]) => Object.keys(schema).length === 0);
    expect(empty.map(([path]) => path.join('/'))).toEqual([]);
  });

  it('names media types without parameters', () => {
    const media = everything
      .filter(([path]) => path.at(-1) === 'content')
      .flatMap(([, content]) => Object.keys(content));
    expect([...new Set(media)].sort()).toEqual([
      'application/json',
      'application/jwt',
      'application/oauth-authz-req+jwt',
      'application/octet-stream',
      'application/pkix-cert',
      'application/pkix-crl',
      'application/problem+json',
      'application/statuslist+cwt',
      'application/statuslist+jwt',
      'application/vc+jwt',
      'application/x-ndjson',
      'application/x-www-form-urlencoded',
      'application/xml',
      'image/svg+xml',
      'text/html',
      'text/plain',
      'text/vnd.mermaid',
    ]);
  });

  it('declares Idempotency-Key where a route takes it', () => {
    const declared = operations.filter(({ operation }) =>
      (Array.isArray(operation['parameters']) ? operation['parameters'] : []).some(
        (parameter: Members) => parameter['in'] === 'header' && parameter['name'] === 'idempotency-key',
      ),
    );
    expect(declared.map(({ operation }) => operation['operationId']).sort()).toEqual([
      'createBlueprintDraft',
      'createBlueprintDraftOfPublication',
      'createInstance',
      'createMasterKey',
      'createMasterKeyV1',
      'createOrganization',
      'createOrganizationUser',
      'createWallet',
      'createWalletV1',
      'executeAction',
      'grantWalletAccess',
      'grantWalletAccessV1',
      'initiateRegister',
      'proposeGovernanceChange',
      'proposeRegisterCryptoPolicy',
      'proposeRegisterPolicy',
      'publishBlueprint',
      'rejectAction',
      'rejectTransaction',
      'rotateDerivedKey',
      'rotateDerivedKeyV1',
      'submitAction',
      'submitTransaction',
    ]);
  });

  it('groups operations under one spelling of each tag', () => {
    const tags = new Set(
      operations.flatMap(({ operation }) => (operation['tags'] as string[] | undefined) ?? ['none']),
    );
    expect([...tags].filter((tag) => !/^[A-Z]/.test(tag))).toEqual([]);
    expect(new Set([...tags].map((tag) => tag.toLowerCase())).size).toBe(tags.size);
  });

  it('names internal operations in the same way', () => {
    const ids = everything.flatMap(([, { operationId }]) =>
      typeof operationId === 'string' ? [operationId] : [],
    );
    expect(ids.length).toBeGreaterThan(operations.length * 2);
    expect(ids.filter((id) => !isOperationId(id))).toEqual([]);
  });
});
