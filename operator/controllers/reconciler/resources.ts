import { API_GROUP, API_VERSION, labels, MANAGED_BY } from '../../api/names.ts';
import {
  configMaps,
  disruptionBudgets,
  ingresses,
  namespaced,
  networkPolicies,
  podMonitors,
  pods,
  serviceAccounts,
  services,
  statefulSets,
  volumeClaims,
} from '../../kube/kinds.ts';
import { isRecord, type KubeObject, keyOf } from '../../kube/resource.ts';
import type { Indexer } from '../../kube/store.ts';
import type { WatchedKind } from './caches.ts';

const own = (kind: string, plural: string) => namespaced(API_GROUP, API_VERSION, kind, plural);

export const validatorSets = own('ValidatorSet', 'validatorsets');
export const registers = own('Register', 'registers');
export const tenants = own('Tenant', 'tenants');

/** Index by `namespace/name` of the object that a member of the spec refers to. */
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

/** Every kind that the operator caches. */
export const watched: readonly WatchedKind[] = [
  { resource: validatorSets },
  {
    resource: registers,
    indexers: { tenantRef: byReference('tenantRef'), validatorSetRef: byReference('validatorSetRef') },
  },
  { resource: tenants },
  // descriptions of installations, and the ConfigMaps of their ValidatorSets
  { resource: configMaps, labelSelector: labels.installation },
  { resource: pods, ...ofSets, indexers: { [setIndex]: bySet } },
  { resource: volumeClaims, ...ofSets, indexers: { [setIndex]: bySet } },
  ...[services, serviceAccounts, statefulSets, disruptionBudgets, networkPolicies, ingresses].map(
    (resource) => ({ resource, ...ours }),
  ),
  { resource: podMonitors, ...ours, isOptional: true },
];
