import { Registry } from 'prom-client';
import type { ManualTiming } from '#kit/testing/manual-timing.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { ClusterCredentials } from '../credentials.ts';
import { createKubeMetrics } from '../metrics.ts';
import { apiVersionOf, type KubeObject, type Metadata, type Resource } from '../resource.ts';
import type { ClusterState, Target } from './cluster-state.ts';

export const widgets: Resource = {
  group: 'test.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
};

export const configMaps: Resource = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

/** An object of a resource in namespace `acme`. */
export function make(
  resource: Resource,
  name: string,
  content: Readonly<Record<string, unknown>> = {},
  metadata: Partial<Metadata> = {},
): KubeObject {
  const own = { name, namespace: 'acme', ...metadata };
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: own, ...content };
}

/** Target of an object in namespace `acme`. */
export function at({ group, version, plural }: Resource, name?: string): Target {
  return { group, version, plural, namespace: 'acme', name };
}

/** Creates or updates an object. */
export function put(state: ClusterState, resource: Resource, object: KubeObject): KubeObject {
  const target = at(resource, object.metadata.name);
  const isThere = state.list(at(resource)).some(({ metadata }) => metadata.name === object.metadata.name);
  return isThere ? state.update(target, object) : state.create(target, object);
}

export interface TestMetrics {
  readonly metrics: ReturnType<typeof createKubeMetrics>;
  /** Sum of the series of a metric with these labels. */
  read(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
}

export function testMetrics(): TestMetrics {
  const registry = new Registry();
  return {
    metrics: createKubeMetrics(registry),
    read: async (name, labels = {}) => {
      const values = (await registry.getSingleMetric(name)?.get())?.values ?? [];
      const fits = (of: Readonly<Record<string, unknown>>) =>
        Object.entries(labels).every(([label, value]) => of[label] === value);
      return values.filter((each) => fits(each.labels)).reduce((sum, { value }) => sum + value, 0);
    },
  };
}

export function credentialsFor(server: string): ClusterCredentials {
  return { read: () => Promise.resolve({ server }) };
}

/** Advances manual time in steps of `stepMs` milliseconds until a condition holds. */
export async function advanceUntil(
  timing: ManualTiming,
  what: string,
  condition: () => boolean,
  stepMs = 100,
): Promise<void> {
  const look = async () => {
    if (condition()) return true;
    await timing.advance(stepMs);
    return condition();
  };
  await waitFor(look, { what, everyMs: 1, deadlineMs: 20_000 });
}
