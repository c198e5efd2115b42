import { z } from 'zod';
import { kubectl } from '../kubectl.ts';

/** Parts of the chart that run beside the database, by their place in the values. */
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

/** The nodes of the cluster: the first one for services and data, one for each validator. */
export interface Places {
  readonly services: string;
  readonly validators: readonly string[];
}

/** @throws Error when there are other than five nodes */
export async function findPlaces(): Promise<Places> {
  const { items } = nodeList.parse(JSON.parse(await kubectl('get', 'nodes', '-o', 'json')));
  const [services = '', ...validators] = items.map(({ metadata }) => metadata.name).sort();
  if (validators.length !== 4) throw new Error(`${items.length} nodes; these journeys need five`);
  return { services, validators };
}

/** Values that keep everything but validators on one node, as `--set` takes them. */
export function pinnedTo(node: string): readonly string[] {
  const key = `nodeSelector.${hostname.replaceAll('.', '\\.')}`;
  return parts.map((part) => `${part}.${key}=${node}`);
}

/** The set of the samples, away from the services. What spreads it over the other nodes is the default. */
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
