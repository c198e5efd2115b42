import type { Resource } from './resource.ts';

/** A namespaced resource. */
export function namespaced(group: string, version: string, kind: string, plural: string): Resource {
  return { group, version, kind, plural, namespaced: true };
}

export const configMaps = namespaced('', 'v1', 'ConfigMap', 'configmaps');
export const services = namespaced('', 'v1', 'Service', 'services');
export const serviceAccounts = namespaced('', 'v1', 'ServiceAccount', 'serviceaccounts');
export const pods = namespaced('', 'v1', 'Pod', 'pods');
export const volumeClaims = namespaced('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims');
export const statefulSets = namespaced('apps', 'v1', 'StatefulSet', 'statefulsets');
export const disruptionBudgets = namespaced('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets');
export const networkPolicies = namespaced('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies');
export const namespaces: Resource = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};
/** Kind of the Prometheus operator, where it is installed. */
export const podMonitors = namespaced('monitoring.coreos.com', 'v1', 'PodMonitor', 'podmonitors');
export const ingresses = namespaced('networking.k8s.io', 'v1', 'Ingress', 'ingresses');
