import { canonicalQuantity } from '../../../api/quantity.ts';
import type { Child } from '../../../kube/apply.ts';
import { hashOf } from '../../../kube/compare.ts';
import {
  configMaps,
  disruptionBudgets,
  networkPolicies,
  serviceAccounts,
  services,
  statefulSets,
} from '../../../kube/kinds.ts';
import { apiVersionOf, type Resource } from '../../../kube/resource.ts';
import { childMetadata, HTTPS_PORT, namesOf, type RenderInput, selectorLabels } from './input.ts';
import { networkPolicySpec } from './network.ts';
import { podTemplate } from './pod.ts';
import { memberSettings } from './settings.ts';

function child(
  input: RenderInput,
  resource: Resource,
  name: string,
  content: Readonly<Record<string, unknown>>,
): Child {
  const { kind } = resource;
  const metadata = childMetadata(input, name);
  return { resource, object: { apiVersion: apiVersionOf(resource), kind, metadata, ...content } };
}

function ports({ set }: RenderInput) {
  const open = (name: string, port: number) => ({ name, port, targetPort: name, protocol: 'TCP' });
  return [open('grpc', set.spec.service.port), open('https', HTTPS_PORT)];
}

/** The StatefulSet. Its claim template is immutable; a change recreates the StatefulSet (see storage.ts). */
function statefulSet(input: RenderInput, configHash: string): Child {
  const { set, replicas, claimSize } = input;
  const names = namesOf(set);
  const { storageClassName } = set.spec.storage;
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: names.claim, labels: selectorLabels(set) },
    spec: {
      accessModes: ['ReadWriteOnce'],
      ...(storageClassName === undefined ? {} : { storageClassName }),
      resources: { requests: { storage: canonicalQuantity(claimSize) } },
    },
  };
  return child(input, statefulSets, names.statefulSet, {
    spec: {
      replicas,
      serviceName: names.headlessService,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      revisionHistoryLimit: 5,
      selector: { matchLabels: selectorLabels(set) },
      template: podTemplate(input, configHash),
      volumeClaimTemplates: [claim],
    },
  });
}

/** Node drains may evict as many members at once as may fail; unhealthy pods may always be evicted. */
function disruptionBudget(input: RenderInput): readonly Child[] {
  const { set, replicas, faultTolerance } = input;
  if (replicas <= 1) return [];
  const spec = {
    maxUnavailable: faultTolerance,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: { matchLabels: selectorLabels(set) },
  };
  return [child(input, disruptionBudgets, namesOf(set).disruptionBudget, { spec })];
}

/** Every child of a set, in the order of creation. */
export function renderValidatorSet(input: RenderInput): readonly Child[] {
  const { set, installation } = input;
  const names = namesOf(set);
  const data = memberSettings(input);
  const selector = selectorLabels(set);
  const policy = installation.networkPolicies.enabled
    ? [child(input, networkPolicies, names.networkPolicy, { spec: networkPolicySpec(input) })]
    : [];
  const headless = {
    type: 'ClusterIP',
    clusterIP: 'None',
    // members connect to each other before they are ready
    publishNotReadyAddresses: true,
    selector,
    ports: ports(input),
  };
  return [
    child(input, serviceAccounts, names.serviceAccount, { automountServiceAccountToken: false }),
    child(input, configMaps, names.configMap, { data }),
    child(input, services, names.headlessService, { spec: headless }),
    child(input, services, names.service, {
      spec: { type: set.spec.service.type, selector, ports: ports(input) },
    }),
    ...policy,
    ...disruptionBudget(input),
    statefulSet(input, hashOf(data)),
  ];
}
