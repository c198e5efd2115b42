import { z } from 'zod';
import { integer, listOf, mapOf, quantity, text, withRules } from './fields.ts';

/** The typed part of a pod that a custom resource may set; there is no raw template (notes/operator.md 4.1). */

const qualifiedName = {
  min: 1,
  max: 317,
  pattern: /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?[/])?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
  message: 'write a label key such as topology.kubernetes.io/zone',
} as const;
const labelValue = {
  max: 63,
  pattern: /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/,
  message: 'write a label value of letters, digits, hyphens, dots and underscores',
} as const;

const labelKeys = {
  keyMax: qualifiedName.max,
  keyPattern: qualifiedName.pattern,
  message: `${qualifiedName.message} as each key`,
};

const labels = () => mapOf(text(labelValue), { entries: 64, ...labelKeys });

const requirement = (operators: readonly [string, ...string[]]) =>
  z.strictObject({
    key: text(qualifiedName).describe('Label key.'),
    operator: z.enum(operators).describe('How the values are compared.'),
    values: listOf(text(labelValue), 32).optional().describe('Values to compare with.'),
  });

const labelSelector = () =>
  z
    .strictObject({
      matchLabels: labels().optional().describe('Labels that must be there with these values.'),
      matchExpressions: listOf(requirement(['In', 'NotIn', 'Exists', 'DoesNotExist']), 16)
        .optional()
        .describe('Further requirements; all must hold.'),
    })
    .describe('Which pods are meant.');

const nodeSelectorTerm = () =>
  z.strictObject({
    matchExpressions: listOf(requirement(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']), 16)
      .optional()
      .describe('Requirements on labels of a node.'),
  });

const weight = () => integer(1, 100).describe('Preference from 1 to 100.');

const nodeAffinity = () =>
  z.strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: z
      .strictObject({
        nodeSelectorTerms: z.array(nodeSelectorTerm()).min(1).max(16).describe('One of them must match.'),
      })
      .optional()
      .describe('Nodes that are possible.'),
    preferredDuringSchedulingIgnoredDuringExecution: listOf(
      z.strictObject({ weight: weight(), preference: nodeSelectorTerm().describe('The nodes.') }),
      16,
    )
      .optional()
      .describe('Nodes that are preferred.'),
  });

const podAffinityTerm = () =>
  z.strictObject({
    labelSelector: labelSelector().optional(),
    topologyKey: text(qualifiedName).describe('Label of the nodes that make one place.'),
  });

const podAffinity = () =>
  z.strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: listOf(podAffinityTerm(), 16)
      .optional()
      .describe('Rules that must hold.'),
    preferredDuringSchedulingIgnoredDuringExecution: listOf(
      z.strictObject({ weight: weight(), podAffinityTerm: podAffinityTerm().describe('The pods.') }),
      16,
    )
      .optional()
      .describe('Rules that are preferred.'),
  });

const affinity = () =>
  z.strictObject({
    nodeAffinity: nodeAffinity().optional().describe('Which nodes.'),
    podAffinity: podAffinity().optional().describe('Near which pods.'),
    podAntiAffinity: podAffinity().optional().describe('Away from which pods.'),
  });

const toleration = () =>
  withRules(
    z.strictObject({
      key: text({ ...qualifiedName, min: 1 })
        .optional()
        .describe('Key of the taint; all keys when absent.'),
      operator: z.enum(['Exists', 'Equal']).optional().describe('Equal unless stated.'),
      value: text(labelValue).optional().describe('Value of the taint, for Equal.'),
      effect: z
        .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
        .optional()
        .describe('Effect of the taint; all effects when absent.'),
      tolerationSeconds: integer(0, 31_536_000).optional().describe('How long NoExecute is tolerated.'),
    }),
    {
      cel: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
      message: 'a toleration without key needs operator Exists',
      holds: ({ key, operator }) => key !== undefined || operator === 'Exists',
    },
    {
      cel: "!has(self.value) || !has(self.operator) || self.operator == 'Equal'",
      message: 'a toleration with operator Exists has no value; remove value',
      holds: ({ value, operator }) => value === undefined || operator !== 'Exists',
    },
    {
      cel: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
      message: 'tolerationSeconds needs effect NoExecute',
      holds: ({ tolerationSeconds, effect }) => tolerationSeconds === undefined || effect === 'NoExecute',
    },
  );

const spread = () =>
  z.strictObject({
    maxSkew: integer(1, 100).describe('Largest difference in pods between two places.'),
    topologyKey: text(qualifiedName).describe('Label of the nodes that make one place.'),
    whenUnsatisfiable: z
      .enum(['DoNotSchedule', 'ScheduleAnyway'])
      .describe('What happens when it cannot hold.'),
    minDomains: integer(1, 100).optional().describe('Least number of places, with DoNotSchedule.'),
    nodeAffinityPolicy: z
      .enum(['Honor', 'Ignore'])
      .optional()
      .describe('Whether nodeSelector and affinity count.'),
    nodeTaintsPolicy: z.enum(['Honor', 'Ignore']).optional().describe('Whether taints count.'),
    labelSelector: labelSelector().optional().describe('Which pods are counted; the members when absent.'),
  });

const resourceNames = {
  entries: 16,
  keyMax: qualifiedName.max,
  keyPattern: qualifiedName.pattern,
  message: 'write a resource name such as cpu or memory as each key',
};

const resources = () =>
  z.strictObject({
    requests: mapOf(quantity(), resourceNames).optional().describe('What a pod is promised.'),
    limits: mapOf(quantity(), resourceNames).optional().describe('What a pod may use at most.'),
  });

const reservedKeys = /^([a-z0-9.-]*[.])?(chancery[.]dev|kubernetes[.]io|k8s[.]io)[/]/;

const own = (what: string) => {
  const message = `${what} of chancery.dev, kubernetes.io and k8s.io belong to the platform; use a prefix of your own`;
  return {
    cel: `self.all(k, !k.matches(r'${reservedKeys.source}'))`,
    message,
    holds: (found: Readonly<Record<string, unknown>>) =>
      Object.keys(found).every((key) => !reservedKeys.test(key)),
  };
};

const message = 'write an annotation key such as example.org/team as each key';

/** Members of a spec that shape its pods. */
export const podFields = {
  resources: resources()
    .optional()
    .describe('Processor and memory of each pod; the installation decides when absent.'),
  nodeSelector: labels().optional().describe('Labels that a node must have.'),
  tolerations: listOf(toleration(), 32).optional().describe('Taints that the pods tolerate.'),
  affinity: affinity().optional().describe('Attraction to nodes and pods.'),
  topologySpreadConstraints: listOf(spread(), 8)
    .optional()
    .describe('How the pods spread; over hosts when absent.'),
  priorityClassName: text({ ...qualifiedName, max: 253 })
    .optional()
    .describe('PriorityClass of the pods.'),
  podLabels: withRules(labels(), own('labels')).optional().describe('Further labels of the pods.'),
  podAnnotations: withRules(
    mapOf(text({ max: 4096 }), { ...labelKeys, entries: 64, message }),
    own('annotations'),
  )
    .optional()
    .describe('Further annotations of the pods.'),
} as const;
