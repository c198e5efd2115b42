import { z } from 'zod';
import { integer, listOf, mapOf, quantity, text, withRules } from './fields.ts';

/**
 * The typed part of a pod that a custom resource may set. A raw pod template would let a spec replace the image, the
 * identity or the probes of a validator.
 */

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
      matchLabels: labels().optional().describe('Labels with the required values.'),
      matchExpressions: listOf(requirement(['In', 'NotIn', 'Exists', 'DoesNotExist']), 16)
        .optional()
        .describe('Further requirements; all must match.'),
    })
    .describe('Selector of pods.');

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
        nodeSelectorTerms: z
          .array(nodeSelectorTerm())
          .min(1)
          .max(16)
          .describe('Terms of which one must match.'),
      })
      .optional()
      .describe('Required nodes.'),
    preferredDuringSchedulingIgnoredDuringExecution: listOf(
      z.strictObject({ weight: weight(), preference: nodeSelectorTerm().describe('The nodes.') }),
      16,
    )
      .optional()
      .describe('Preferred nodes.'),
  });

const podAffinityTerm = () =>
  z.strictObject({
    labelSelector: labelSelector().optional(),
    topologyKey: text(qualifiedName).describe('Node label whose values are the topology domains.'),
  });

const podAffinity = () =>
  z.strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: listOf(podAffinityTerm(), 16)
      .optional()
      .describe('Required rules.'),
    preferredDuringSchedulingIgnoredDuringExecution: listOf(
      z.strictObject({ weight: weight(), podAffinityTerm: podAffinityTerm().describe('The pods.') }),
      16,
    )
      .optional()
      .describe('Preferred rules.'),
  });

const affinity = () =>
  z.strictObject({
    nodeAffinity: nodeAffinity().optional().describe('Attraction to nodes.'),
    podAffinity: podAffinity().optional().describe('Attraction to pods.'),
    podAntiAffinity: podAffinity().optional().describe('Repulsion from pods.'),
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
      tolerationSeconds: integer(0, 31_536_000)
        .optional()
        .describe('Seconds for which NoExecute is tolerated.'),
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
    maxSkew: integer(1, 100).describe('Largest difference in pods between two topology domains.'),
    topologyKey: text(qualifiedName).describe('Node label whose values are the topology domains.'),
    whenUnsatisfiable: z
      .enum(['DoNotSchedule', 'ScheduleAnyway'])
      .describe('What happens to a pod that violates the constraint.'),
    minDomains: integer(1, 100)
      .optional()
      .describe('Smallest number of topology domains, with DoNotSchedule.'),
    nodeAffinityPolicy: z
      .enum(['Honor', 'Ignore'])
      .optional()
      .describe('Whether nodeSelector and affinity count.'),
    nodeTaintsPolicy: z.enum(['Honor', 'Ignore']).optional().describe('Whether taints count.'),
    labelSelector: labelSelector()
      .optional()
      .describe('Selector of the counted pods; the members when absent.'),
  });

const resourceNames = {
  entries: 16,
  keyMax: qualifiedName.max,
  keyPattern: qualifiedName.pattern,
  message: 'write a resource name such as cpu or memory as each key',
};

const resources = () =>
  z.strictObject({
    requests: mapOf(quantity(), resourceNames).optional().describe('Resource requests of a pod.'),
    limits: mapOf(quantity(), resourceNames).optional().describe('Resource limits of a pod.'),
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

/** Members of a spec that set fields of its pods. */
export const podFields = {
  resources: resources()
    .optional()
    .describe("Resources of each pod; the installation's defaults when absent."),
  nodeSelector: labels().optional().describe('Labels that a node must have.'),
  tolerations: listOf(toleration(), 32).optional().describe('Taints that the pods tolerate.'),
  affinity: affinity().optional().describe('Attraction to nodes and pods.'),
  topologySpreadConstraints: listOf(spread(), 8)
    .optional()
    .describe('Spread of the pods; over hosts when absent.'),
  priorityClassName: text({ ...qualifiedName, max: 253 })
    .optional()
    .describe('PriorityClass of the pods.'),
  podLabels: withRules(labels(), own('labels')).optional().describe('Additional labels of the pods.'),
  podAnnotations: withRules(
    mapOf(text({ max: 4096 }), { ...labelKeys, entries: 64, message }),
    own('annotations'),
  )
    .optional()
    .describe('Additional annotations of the pods.'),
} as const;
