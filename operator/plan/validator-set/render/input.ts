import { labels, MANAGED_BY, PART_OF, validatorSetNames } from '../../../api/names.ts';
import type { ValidatorSet } from '../../../api/validator-set.ts';
import type { Installation } from '../../../platform/installation.ts';

/** From what the children of a set are made. The operator's own version is no part of it: upgrading it restarts nothing. */
export interface RenderInput {
  readonly set: ValidatorSet;
  readonly installation: Installation;
  /** Pods at this step of the walk to spec.replicas. */
  readonly replicas: number;
  /** Members that may be away at the same time. */
  readonly faultTolerance: number;
  /** Size in the template of the claims, a quantity: the former one until the StatefulSet is made anew. */
  readonly claimSize: string;
}

export const COMPONENT = 'validator';

/** Ports of a validator that do not depend on the spec (decision D41). */
export const HTTPS_PORT = 7443;
export const OPS_PORT = 9090;

/** Where things are in a validator's pod. */
export const paths = {
  data: '/data',
  identity: '/var/run/chancery/identity',
  workloadApi: '/run/spire/agent-sockets',
  natsCa: '/etc/chancery/ca/nats',
} as const;

/** Labels that select the pods of a set; they never change. */
export function selectorLabels({ metadata }: ValidatorSet): Readonly<Record<string, string>> {
  return { [labels.name]: COMPONENT, [labels.validatorSet]: metadata.name };
}

/** Labels of every child of a set. */
export function childLabels({ set, installation }: Pick<RenderInput, 'set' | 'installation'>) {
  return {
    ...selectorLabels(set),
    [labels.instance]: set.metadata.name,
    [labels.component]: COMPONENT,
    [labels.partOf]: PART_OF,
    [labels.managedBy]: MANAGED_BY,
    [labels.installation]: installation.installation,
  };
}

/** Metadata of a child. */
export function childMetadata(input: Pick<RenderInput, 'set' | 'installation'>, name: string) {
  return { name, namespace: input.set.metadata.namespace, labels: childLabels(input) };
}

export function namesOf({ metadata }: ValidatorSet) {
  return validatorSetNames(metadata.name);
}
