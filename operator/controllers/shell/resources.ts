import { API_GROUP, API_VERSION, labels, MANAGED_BY } from '../../api/names.ts';
import { isRecord, type KubeObject, keyOf, type Resource } from '../../kube/resource.ts';
import type { Indexer } from '../../kube/store.ts';
import type { Watched } from './caches.ts';

function namespaced(group: string, version: string, kind: string, plural: string): Resource {
  return { group, version, kind, plural, namespaced: true };
}

const own = (kind: string, plural: string) => namespaced(API_GROUP, API_VERSION, kind, plural);

export const validatorSets = own('ValidatorSet', 'validatorsets');
export const registers = own('Register', 'registers');
export const tenants = own('Tenant', 'tenants');

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
/** Of the Prometheus operator, where that is installed. */
export const podMonitors = namespaced('monitoring.coreos.com', 'v1', 'PodMonitor', 'podmonitors');
export const ingresses = namespaced('networking.k8s.io', 'v1', 'Ingress', 'ingresses');

/** `namespace/name` of what a member of the spec refers to. */
export function byReference(member: string): Indexer {
  return ({ metadata, spec }: KubeObject) => {
    const reference = isRecord(spec) ? spec[member] : undefined;
    const name = isRecord(reference) ? reference['name'] : undefined;
    return typeof name === 'string' ? [keyOf({ ...metadata, name })] : [];
  };
}

const ours = { labelSelector: `${labels.managedBy}=${MANAGED_BY}` };
const ofSets = { labelSelector: labels.validatorSet };

/** Index of pods and claims by `namespace/name` of their ValidatorSet. */
export const setIndex = 'validatorSet';
const bySet: Indexer = ({ metadata }) => {
  const name = metadata.labels?.[labels.validatorSet];
  return name === undefined ? [] : [keyOf({ ...metadata, name })];
};

/** Everything that the operator keeps in memory. */
export const watched: readonly Watched[] = [
  { resource: validatorSets },
  {
    resource: registers,
    indexers: { tenantRef: byReference('tenantRef'), validatorSetRef: byReference('validatorSetRef') },
  },
  { resource: tenants },
  // descriptions of installations and what we make of them
  { resource: configMaps, labelSelector: labels.installation },
  { resource: pods, ...ofSets, indexers: { [setIndex]: bySet } },
  { resource: volumeClaims, ...ofSets, indexers: { [setIndex]: bySet } },
  ...[services, serviceAccounts, statefulSets, disruptionBudgets, networkPolicies, ingresses].map(
    (resource) => ({ resource, ...ours }),
  ),
  { resource: podMonitors, ...ours, isOptional: true },
];
