import { labels } from '../../../api/names.ts';
import type { Child } from '../../../kube/apply.ts';
import { podMonitors } from '../../../kube/kinds.ts';
import { apiVersionOf } from '../../../kube/resource.ts';
import { childLabels, childMetadata, namesOf, type RenderInput, selectorLabels } from './input.ts';

/** PodMonitor of a set, for clusters with the Prometheus operator; empty when it is disabled. */
export function podMonitor(input: Pick<RenderInput, 'set' | 'installation'>): readonly Child[] {
  const { set, installation } = input;
  const { enabled, interval, labels: chosenBy } = installation.metrics.podMonitor;
  if (!enabled) return [];
  const metadata = childMetadata(input, namesOf(set).podMonitor);
  const object = {
    apiVersion: apiVersionOf(podMonitors),
    kind: podMonitors.kind,
    metadata: { ...metadata, labels: { ...chosenBy, ...childLabels(input) } },
    spec: {
      jobLabel: labels.name,
      podTargetLabels: [labels.validatorSet],
      selector: { matchLabels: selectorLabels(set) },
      podMetricsEndpoints: [{ port: 'ops', path: '/metrics', interval }],
    },
  };
  return [{ resource: podMonitors, object }];
}
