import type { Logger } from '#kit/log/log.ts';
import type { ServiceName } from '../routing/table.ts';
import {
  type IsRouted,
  mergeDocuments,
  type OpenApiDocument,
  parseDocument,
  publicDocument,
} from './merge.ts';

/** Fetches what a service serves at `/openapi.json`, parsed from JSON. */
export type FetchDocument = (service: ServiceName | 'gateway') => Promise<unknown>;

export interface DocumentsOptions {
  readonly services: ReadonlyArray<ServiceName | 'gateway'>;
  readonly fetch: FetchDocument;
  readonly isRouted: IsRouted;
  readonly nowMs: () => number;
  readonly log: Logger;
}

export interface Documents {
  /** The public document of one service; undefined when it is not configured or has never answered. */
  find(service: string): Promise<OpenApiDocument | undefined>;
  /** The documents of every service that has ever answered, as one. */
  merged(): Promise<OpenApiDocument>;
}

const freshMs = 30_000;

/** Release of the interface (specification 1, section 9). */
const info = {
  title: 'Chancery',
  version: '2.6.0',
  description: 'Registers, identities, wallets and proofs that anyone can check.',
} as const;

interface Held {
  readonly document: OpenApiDocument | undefined;
  readonly fetchedMs: number;
}

/** Documents are fetched when asked for, kept for half a minute, and kept on while their service is down. */
export function createDocuments(options: DocumentsOptions): Documents {
  const held = new Map<string, Held>();
  const underWay = new Map<string, Promise<OpenApiDocument | undefined>>();

  const refresh = async (service: ServiceName | 'gateway'): Promise<OpenApiDocument | undefined> => {
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

  const load = (service: ServiceName | 'gateway'): Promise<OpenApiDocument | undefined> => {
    const known = held.get(service);
    if (known?.document !== undefined && options.nowMs() - known.fetchedMs < freshMs) {
      return Promise.resolve(known.document);
    }
    const running = underWay.get(service) ?? refresh(service).finally(() => underWay.delete(service));
    underWay.set(service, running);
    return running;
  };

  return {
    find: async (name) => {
      const service = options.services.find((known) => known === name);
      return service === undefined ? undefined : load(service);
    },
    merged: async () => {
      const documents = await Promise.all(options.services.map(load));
      return mergeDocuments(
        documents.filter((document) => document !== undefined),
        info,
      );
    },
  };
}
