import { z } from 'zod';
import { withoutUnusedSchemas } from '#kit/http/http.ts';
import type { IsRouted } from '../routing/public.ts';

const jsonObject = z.record(z.string(), z.unknown());
type JsonObject = z.output<typeof jsonObject>;

/** The members of an OpenAPI 3.1 document that merging reads; the others are kept unchanged. */
const documentSchema = z.looseObject({
  openapi: z.string().regex(/^3\.1\./),
  paths: z.record(z.string(), jsonObject).default({}),
  components: z.record(z.string(), jsonObject).default({}),
});

export type OpenApiDocument = z.output<typeof documentSchema>;

/** Parses a service's `/openapi.json`; throws a ZodError for anything other than OpenAPI 3.1. */
export function parseDocument(value: unknown): OpenApiDocument {
  return documentSchema.parse(value);
}

/** The public document of one service. */
interface ServiceDocument {
  readonly service: string;
  readonly document: OpenApiDocument;
}

/** Component sections whose names are shared rather than prefixed: the platform has one way to authenticate. */
const sharedSections = new Set(['securitySchemes']);

/** Schemas that every service has from the kit. */
const sharedSchemas = new Set(['Problem']);

/**
 * One service's document without the paths that the gateway does not route to it and the schemas that only these refer
 * to, with component names prefixed by the service's name. Public paths and operation ids stay unchanged: both are unique over all services.
 */
export function publicDocument(source: ServiceDocument, isRouted: IsRouted): OpenApiDocument {
  const prefix = pascal(source.service);
  const { document } = source;
  const paths = Object.fromEntries(
    Object.entries(document.paths)
      .filter(([path]) => isRouted(source.service, path))
      .map(([path, item]) => [path, renameRefs(item, prefix)]),
  );
  const components = Object.fromEntries(
    Object.entries(document.components).map(([section, entries]) => [
      section,
      sharedSections.has(section) ? entries : prefixNames(section, renameRefs(entries, prefix), prefix),
    ]),
  );
  return withoutUnusedSchemas({ ...document, paths, components, servers: [{ url: '/' }] });
}

/** Merges all documents. If two services declare a path, the first one wins. */
export function mergeDocuments(documents: readonly OpenApiDocument[], info: JsonObject): OpenApiDocument {
  const paths: Record<string, JsonObject> = {};
  const components: Record<string, JsonObject> = {};
  const tags = new Map<string, unknown>();
  for (const document of documents) {
    for (const [path, item] of Object.entries(document.paths)) paths[path] = { ...item, ...paths[path] };
    for (const [section, entries] of Object.entries(document.components)) {
      components[section] = { ...entries, ...components[section] };
    }
    for (const tag of Array.isArray(document['tags']) ? document['tags'] : []) {
      const name = jsonObject.safeParse(tag).data?.['name'];
      if (typeof name === 'string' && !tags.has(name)) tags.set(name, tag);
    }
  }
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/' }],
    ...(tags.size > 0 ? { tags: [...tags.values()] } : {}),
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components,
  };
}

function pascal(service: string): string {
  return service
    .split('-')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
}

function prefixNames(section: string, entries: JsonObject, prefix: string): JsonObject {
  return Object.fromEntries(
    Object.entries(entries).map(([name, value]) => [publicName(section, name, prefix), value]),
  );
}

function publicName(section: string, name: string, prefix: string): string {
  const isShared = sharedSections.has(section) || (section === 'schemas' && sharedSchemas.has(name));
  return isShared ? name : `${prefix}${name}`;
}

const componentRef = /^#\/components\/([^/]+)\/([^/]+)(.*)$/;

function renameRefs(value: JsonObject, prefix: string): JsonObject {
  const result: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    const renamed =
      typeof member === 'string' ? renameText(key, member, prefix) : renameValue(member, prefix);
    Object.defineProperty(result, key, {
      value: renamed,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return result;
}

function renameValue(value: unknown, prefix: string): unknown {
  if (Array.isArray(value)) return value.map((item) => renameValue(item, prefix));
  const object = jsonObject.safeParse(value);
  return object.success ? renameRefs(object.data, prefix) : value;
}

/** `$ref` is a reference; so is every value of a discriminator's `mapping`, which starts the same way. */
function renameText(key: string, text: string, prefix: string): string {
  const found = componentRef.exec(text);
  if (found === null || key === 'description' || key === 'example') return text;
  const [, section = '', name = '', rest = ''] = found;
  return `#/components/${section}/${publicName(section, name, prefix)}${rest}`;
}
