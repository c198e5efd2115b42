import { type AppError, isAppError } from '#core/errors/errors.ts';
import { describesInstallation, type Installation, parseInstallation } from '../api/installation.ts';
import type { Cache } from '../kube/store.ts';

/** The installation of a namespace, or why there is none. */
type InstallationResult =
  | { readonly installation: Installation; readonly fault?: undefined }
  | { readonly installation?: undefined; readonly fault: AppError };

/** Installations by namespace. */
export interface Installations {
  find(namespace: string): InstallationResult;
  /** Readable installations that this operator manages. */
  all(): readonly Installation[];
  /** Whether this operator manages a namespace, which is the case unless its installation names another operator. */
  isOurs(namespace: string): boolean;
  /** Calls back with the namespace of a changed description. Returns a function that unsubscribes. */
  subscribe(listener: (namespace: string) => void): () => void;
}

/**
 * Reads installations from the cache of ConfigMaps; each version is parsed once.
 * @param operatorNamespace namespace of this operator; undefined to manage every installation
 */
export function watchInstallations(configMaps: Cache, operatorNamespace?: string): Installations {
  const known = new Map<string, InstallationResult>();
  const listeners = new Set<(namespace: string) => void>();
  configMaps.subscribe(({ object, before }) => {
    if (!describesInstallation(object) && (before === undefined || !describesInstallation(before))) return;
    const { namespace = '' } = object.metadata;
    known.delete(namespace);
    for (const listener of listeners) listener(namespace);
  });
  const read = (namespace: string): InstallationResult => {
    const inNamespace = configMaps.list().filter(({ metadata }) => metadata.namespace === namespace);
    try {
      return { installation: parseInstallation(inNamespace) };
    } catch (error) {
      if (isAppError(error, 'invalid')) return { fault: error };
      throw error;
    }
  };
  const find = (namespace: string): InstallationResult => {
    const found = known.get(namespace) ?? read(namespace);
    known.set(namespace, found);
    return found;
  };
  const isOurs = (namespace: string): boolean => {
    const { installation } = find(namespace);
    if (installation === undefined || operatorNamespace === undefined) return true;
    return (installation.operatorNamespace ?? namespace) === operatorNamespace;
  };
  return {
    find,
    all: () => {
      const described = configMaps.list().filter(describesInstallation);
      const namespaces = new Set(described.map(({ metadata }) => metadata.namespace ?? ''));
      return [...namespaces].filter(isOurs).flatMap((each) => find(each).installation ?? []);
    },
    isOurs,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
