import { z } from 'zod';
import { commonSettings, identitySettings } from '#kit/config/config.ts';

const milliseconds = (least: number) => z.coerce.number().int().min(least).max(600_000);
const namespace = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Namespaces that the operator reconciles: its own, all, or a list. */
type Scope = 'own' | 'all' | readonly string[];

const scope = z.string().transform((text, context): Scope => {
  if (text === 'own' || text === 'all') return text;
  const names = [...new Set(text.split(',').map((each) => each.trim()))];
  if (names.every((each) => namespace.test(each))) return names;
  context.addIssue({ code: 'custom', message: 'expected own, all, or a comma-separated list of namespaces' });
  return z.NEVER;
});

const { CHANCERY_INSTALLATION, CHANCERY_LISTEN_HOST, CHANCERY_OPS_PORT, CHANCERY_LOG_LEVEL } = commonSettings;

/** Every setting of the operator. */
export const operatorSettings = z.object({
  CHANCERY_INSTALLATION,
  CHANCERY_LISTEN_HOST,
  CHANCERY_OPS_PORT,
  CHANCERY_LOG_LEVEL,
  ...identitySettings,
  OTEL_EXPORTER_OTLP_ENDPOINT: commonSettings.OTEL_EXPORTER_OTLP_ENDPOINT,
  POD_NAME: z.string().min(1).max(253).describe('Name of the pod, used in the lease and in events.'),
  POD_NAMESPACE: z.string().regex(namespace, 'expected a namespace').describe('Namespace of the pod.'),
  CHANCERY_NAMESPACES: scope
    .prefault('own')
    .describe('Namespaces that the operator reconciles: own, all, or a comma-separated list.'),
  CHANCERY_LEASE_NAME: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'expected a Kubernetes name')
    .default('chancery-operator')
    .describe('Name of the Lease of the operator, in POD_NAMESPACE.'),
  CHANCERY_LEASE_MS: milliseconds(1_000)
    .default(14_000)
    .describe('Lease duration: how long other processes respect a lease that is not renewed.'),
  CHANCERY_LEASE_RENEW_MS: milliseconds(500)
    .default(10_000)
    .describe(
      'Renew deadline: how long a leader writes after its last renewal; less than CHANCERY_LEASE_MS.',
    ),
  CHANCERY_LEASE_RETRY_MS: milliseconds(100)
    .default(2_000)
    .describe('Interval between attempts to acquire or renew the lease.'),
  KUBECONFIG: z
    .string()
    .optional()
    .describe('Kubeconfig file; when absent, the ServiceAccount of the pod is used.'),
  KUBERNETES_SERVICE_HOST: z.string().optional().describe('Address of the API server, set by the kubelet.'),
  KUBERNETES_SERVICE_PORT: z.string().optional().describe('Port of the API server, set by the kubelet.'),
});

export type OperatorConfig = z.output<typeof operatorSettings>;
