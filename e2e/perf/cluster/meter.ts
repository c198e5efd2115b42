import { apply, kubectl } from '../../cluster/kubectl.ts';
import { until } from '../../harness/wait.ts';
import { samplesOf } from '../metrics.ts';

const name = 'chancery-bench-operator';

/** Counts the calls of the operator at the API server. */
export interface Meter {
  readonly calls: () => Promise<number>;
  readonly remove: () => Promise<void>;
}

/** Requests of a flow that were admitted, watches once each, from the API server's metrics. */
export function dispatched(text: string, flowSchema: string): number {
  return samplesOf(text, 'apiserver_flowcontrol_dispatched_requests_total')
    .filter(({ labels }) => labels['flow_schema'] === flowSchema)
    .reduce((sum, { value }) => sum + value, 0);
}

/**
 * The API server counts requests by flow, not by client, so the operator's ServiceAccount gets a FlowSchema of its own,
 * with the usual priority of ServiceAccounts.
 */
export async function openMeter(namespace: string, metrics: () => Promise<string>): Promise<Meter> {
  const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
  await apply(namespace, {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: { name },
    spec: {
      matchingPrecedence: 50,
      priorityLevelConfiguration: { name: 'workload-low' },
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'ServiceAccount', serviceAccount: { name: 'service-operator', namespace } }],
          resourceRules: [{ ...everything, namespaces: ['*'], clusterScope: true }],
          nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        },
      ],
    },
  });
  const calls = async () => dispatched(await metrics(), name);
  const isCounted = async () => ((await calls()) > 0 ? true : undefined);
  await until('the API server counts the calls of the operator', 30_000, isCounted);
  return {
    calls,
    remove: async () => void (await kubectl('delete', 'flowschema', name, '--ignore-not-found')),
  };
}
