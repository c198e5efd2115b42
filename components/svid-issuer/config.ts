import { z } from 'zod';
import { commonSettings, port } from '#kit/config/config.ts';

const { CHANCERY_INSTALLATION, CHANCERY_LISTEN_HOST, CHANCERY_OPS_PORT, CHANCERY_LOG_LEVEL } = commonSettings;
const { OTEL_EXPORTER_OTLP_ENDPOINT } = commonSettings;

const objectName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'expected the name of an object');

/** Parses `a,b` into a set of service accounts, which are client ids of services. */
const serviceAccounts = z.string().transform((text, context): ReadonlySet<string> => {
  const names = text.split(',').map((name) => name.trim());
  if (
    names.length > 64 ||
    !names.every((name) => /^service-[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$/.test(name))
  ) {
    context.addIssue({ code: 'custom', message: 'expected 1 to 64 names service-x, separated by commas' });
    return z.NEVER;
  }
  return new Set(names);
});

const seconds = (least: number, most: number) => z.coerce.number().int().min(least).max(most);

/** Every setting of the issuer. */
export const svidIssuerSettings = z.object({
  CHANCERY_INSTALLATION,
  CHANCERY_LISTEN_HOST,
  CHANCERY_OPS_PORT,
  CHANCERY_LOG_LEVEL,
  OTEL_EXPORTER_OTLP_ENDPOINT,
  CHANCERY_ISSUER_PORT: port.default(8443).describe('TLS port of the issuer; 0 takes any free one.'),
  CHANCERY_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'expected the name of a namespace')
    .describe('Namespace of the installation; no pod of another one gets an identity.'),
  CHANCERY_SERVICE_ACCOUNTS: serviceAccounts.describe(
    'ServiceAccounts of services, separated by commas; each is the client id that it stands for.',
  ),
  CHANCERY_SVID_TTL_SECONDS: seconds(60, 86_400)
    .default(3600)
    .describe('Life of an SVID; it is replaced at half of it.'),
  CHANCERY_AUTHORITY_OVERLAP_SECONDS: seconds(300, 604_800)
    .default(3600)
    .describe(
      'How long a new root is trusted before it signs, and the former one after it; at least the TTL.',
    ),
  CHANCERY_AUTHORITY_SECRET: objectName
    .default('chancery-identity-authority')
    .describe('Secret that holds the roots with their keys.'),
  CHANCERY_AUTHORITY_CONFIG_MAP: objectName
    .default('chancery-identity-ca')
    .describe('ConfigMap that publishes the certificates of the roots, key ca.crt.'),
  CHANCERY_KUBERNETES_CREDENTIALS_DIR: z
    .string()
    .default('/var/run/secrets/kubernetes.io/serviceaccount')
    .describe('Directory of the pod’s own token and ca.crt for the API server; read again as they change.'),
  KUBERNETES_SERVICE_HOST: z.string().min(1).max(253).describe('API server; the kubelet sets it.'),
  KUBERNETES_SERVICE_PORT: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_535)
    .default(443)
    .describe('Port of the API server; the kubelet sets it.'),
});

export type SvidIssuerConfig = z.output<typeof svidIssuerSettings>;
