import { z } from 'zod';
import { kubectl } from '../kubectl.ts';

/** Parts of the chart that run on the node of the database, by their path in the values. */
const parts = [
  'gateway',
  'tenant',
  'wallet',
  'register',
  'operator',
  'identity.serviceAccount',
  'database.inChart',
  'nats.inChart',
] as const;

const hostname = 'kubernetes.io/hostname';
const nodeList = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

/** Assignment of nodes: the first one for services and data, one per validator. */
export interface NodePlan {
  readonly services: string;
  readonly validators: readonly string[];
}

/** @throws Error when the cluster does not have five nodes */
export async function planNodes(): Promise<NodePlan> {
  const { items } = nodeList.parse(JSON.parse(await kubectl('get', 'nodes', '-o', 'json')));
  const [services = '', ...validators] = items.map(({ metadata }) => metadata.name).sort();
  if (validators.length !== 4) throw new Error(`${items.length} nodes; these journeys need five`);
  return { services, validators };
}

/** Values for `--set` that keep everything except validators on one node. */
export function pinnedTo(node: string): readonly string[] {
  const key = `nodeSelector.${hostname.replaceAll('.', '\\.')}`;
  return parts.map((part) => `${part}.${key}=${node}`);
}

/** The set of the samples, not on the node of the services. The default topology spread distributes it. */
export function validatorSet(services: string): object {
  const elsewhere = { key: hostname, operator: 'NotIn', values: [services] };
  const terms = { nodeSelectorTerms: [{ matchExpressions: [elsewhere] }] };
  return {
    apiVersion: 'chancery.dev/v1alpha1',
    kind: 'ValidatorSet',
    metadata: { name: 'main' },
    spec: {
      replicas: 4,
      storage: { size: '1Gi' },
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
      update: { minReadySeconds: 5 },
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
    },
  };
}
