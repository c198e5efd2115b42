import type { Logger } from '#kit/log/log.ts';
import { gatewayError } from '../errors.ts';
import type { IsRouted } from '../routing/public.ts';
import { mergeDocuments, type OpenApiDocument, parseDocument, publicDocument } from './merge.ts';

/** Fetches a service's `/openapi.json`, parsed from JSON. */
export type FetchDocument = (service: string) => Promise<unknown>;

interface DocumentsOptions {
  readonly services: readonly string[];
  readonly fetch: FetchDocument;
  readonly isRouted: IsRouted;
  readonly nowMs: () => number;
  readonly log: Logger;
}

export interface Documents {
  /**
   * The public document of one service; undefined when it is not configured.
   *
   * Errors: unavailable/SERVICE_UNAVAILABLE while it has never been fetched.
   */
  find(service: string): Promise<OpenApiDocument | undefined>;
  /**
   * The documents of all configured services as one.
   *
   * Errors: unavailable/SERVICE_UNAVAILABLE while one of them has never been fetched.
   */
  merged(): Promise<OpenApiDocument>;
}

const freshMs = 30_000;

/** A failed fetch is not repeated within this time. */
const retryMs = 1000;

/** Release of the interface (specification document 1, section 9). */
const info = {
  title: 'Chancery',
  version: '2.6.0',
  description: 'Registers, identities, wallets and proofs that anyone can check.',
} as const;

interface CachedDocument {
  readonly document: OpenApiDocument | undefined;
  readonly fetchedMs: number;
}

/**
 * Documents are fetched on demand, cached for half a minute, and kept while their service is down. Concurrent requests
 * share a fetch.
 */
export function createDocuments(options: DocumentsOptions): Documents {
  const held = new Map<string, CachedDocument>();
  const underWay = new Map<string, Promise<OpenApiDocument | undefined>>();

  const refresh = async (service: string): Promise<OpenApiDocument | undefined> => {
    let document = held.get(service)?.document;
    try {
      const fetched = parseDocument(await options.fetch(service));
      document = publicDocument({ service, document: fetched }, options.isRouted);
    } catch (error) {
      options.log.warn({ err: error, peer: service }, 'fetching an OpenAPI document failed');
    }
    held.set(service, { document, fetchedMs: options.nowMs() });
    return document;
  };

  const load = (service: string): Promise<OpenApiDocument | undefined> => {
    const known = held.get(service);
    if (known !== undefined) {
      const keptMs = known.document === undefined ? retryMs : freshMs;
      if (options.nowMs() - known.fetchedMs < keptMs) return Promise.resolve(known.document);
    }
    const running = underWay.get(service) ?? refresh(service).finally(() => underWay.delete(service));
    underWay.set(service, running);
    return running;
  };

  const get = async (service: string): Promise<OpenApiDocument> => {
    const document = await load(service);
    if (document !== undefined) return document;
    const options = { retryAfterSeconds: retryMs / 1000 };
    const message = `The document of the ${service} service has not been fetched yet.`;
    throw gatewayError('SERVICE_UNAVAILABLE', message, options);
  };

  return {
    find: async (name) => {
      const service = options.services.find((known) => known === name);
      return service === undefined ? undefined : get(service);
    },
    merged: async () => mergeDocuments(await Promise.all(options.services.map(get)), info),
  };
}
