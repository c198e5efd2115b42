import type { Installation } from '../../../api/installation.ts';
import { labels, MANAGED_BY, PART_OF, validatorSetNames } from '../../../api/names.ts';
import type { ValidatorSet } from '../../../api/validator-set.ts';

/** Input of the children of a set. It does not contain the operator's version, so an upgrade of the operator restarts nothing. */
export interface RenderInput {
  readonly set: ValidatorSet;
  readonly installation: Installation;
  /** Pods at this step of the scaling to spec.replicas. */
  readonly replicas: number;
  /** Members that may be unavailable at the same time. */
  readonly faultTolerance: number;
  /** Size in the claim template, a quantity: the old one until the StatefulSet is recreated. */
  readonly claimSize: string;
}

export const COMPONENT = 'validator';

/** Ports of a validator that do not depend on the spec. */
export const HTTPS_PORT = 7443;
export const OPS_PORT = 9090;

/** Paths in a validator's pod. */
export const paths = {
  data: '/data',
  identity: '/var/run/chancery/identity',
  workloadApi: '/run/spire/agent-sockets',
  natsCa: '/etc/chancery/ca/nats',
} as const;

/** Labels that select the pods of a set. A selector is immutable, so they never change. */
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
