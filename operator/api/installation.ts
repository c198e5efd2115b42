import { z } from 'zod';
import type { AppError } from '#core/errors/errors.ts';
import { INSTALLATION_NAME } from '#core/identity/well-known.ts';
import { type Endpoint, endpoint } from '#kit/config/config.ts';
import { operatorError } from '../errors.ts';
import { isRecord, type KubeObject } from '../kube/resource.ts';
import { labels, MANAGED_BY, OPERATOR_CLIENT_ID } from './names.ts';

/** Key of the ConfigMap that describes an installation. */
export const INSTALLATION_KEY = 'installation.json';

const name = z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'expected a Kubernetes name');
const fileName = z.string().regex(/^[A-Za-z0-9._-]{1,253}$/, 'expected a file name');
const image = z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,511}$/, 'expected an image reference');
const quantities = z
  .record(z.string().min(1).max(317), z.string().min(1).max(64))
  .refine((all) => Object.keys(all).length <= 16, 'expected at most 16 resources');

const spire = z.strictObject({
  provider: z.literal('spire'),
  csiDriver: name.default('csi.spiffe.io').describe('CSI driver that mounts the Workload API.'),
  socketFile: fileName.default('spire-agent.sock').describe('Name of the socket in the mounted directory.'),
});

const serviceAccount = z.strictObject({
  provider: z.literal('serviceAccount'),
  issuer: z.url({ protocol: /^https$/ }).describe('Address of the svid-issuer.'),
  caConfigMap: name.default('chancery-identity-ca').describe("ConfigMap with the issuer's CA."),
  caKey: fileName.default('ca.crt').describe('Key of the CA in that ConfigMap.'),
});

const nats = z
  .strictObject({
    url: z
      .string()
      .regex(/^(nats|tls):\/\/\S{1,500}$/, 'expected nats://host:port')
      .optional()
      .describe('NATS servers of the wake signals, when the address contains no password.'),
    secret: z.strictObject({ name, key: fileName }).optional().describe('Secret with the address.'),
    caConfigMap: name.optional().describe('ConfigMap with the CA of the servers; TLS is used with it.'),
    caKey: fileName.default('ca.crt').describe('Key of the CA in that ConfigMap.'),
  })
  .refine(({ url, secret }) => (url === undefined) !== (secret === undefined), 'expected url or secret');

const address = endpoint.pipe(z.custom<Endpoint>());

const installationSchema = z.strictObject({
  installation: z
    .string()
    .regex(INSTALLATION_NAME, 'expected a DNS name')
    .describe('Name of the installation: trust domain and issuer of tokens.'),
  operatorNamespace: name
    .optional()
    .describe('Namespace of the operator that manages the installation; its own namespace when absent.'),
  version: z.string().min(1).max(64).describe('Version of the validators, unless a ValidatorSet names one.'),
  images: z.strictObject({
    validator: image.describe('Image of the validators.'),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
    pullSecrets: z.array(name).max(16).default([]),
  }),
  identity: z.discriminatedUnion('provider', [spire, serviceAccount]),
  endpoints: z.strictObject({
    tenant: z.strictObject({ https: address, grpc: address, mtls: address }),
    wallet: z.strictObject({ https: address, grpc: address }),
    register: z.strictObject({ https: address, grpc: address }),
    nats,
  }),
  validators: z
    .strictObject({
      resources: z
        .strictObject({ requests: quantities.optional(), limits: quantities.optional() })
        .prefault({ requests: { cpu: '100m', memory: '192Mi' }, limits: { memory: '768Mi' } }),
      logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']).default('info'),
      rateLimitProfile: z.enum(['production', 'development']).default('production'),
      tracingEndpoint: z.url().optional(),
    })
    .prefault({}),
  networkPolicies: z
    .strictObject({
      enabled: z.boolean().default(true),
      metricsNamespaces: z.array(name).max(16).default([]).describe('Namespaces that may read metrics.'),
      allowedClients: z
        .array(name)
        .max(32)
        .default(['service-gateway', 'service-register', OPERATOR_CLIENT_ID])
        .describe('Client ids of the services that call validators.'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      podMonitor: z
        .strictObject({
          enabled: z.boolean().default(true),
          interval: z
            .string()
            .regex(/^[0-9]{1,6}(ms|s|m)$/, 'expected a duration such as 30s')
            .default('30s')
            .describe('Pause between scrapes.'),
          labels: z
            .record(z.string().min(1).max(317), z.string().max(63))
            .default({})
            .describe('Labels by which Prometheus selects the PodMonitor.'),
        })
        .prefault({}),
    })
    .prefault({})
    .describe('PodMonitors of validators, in clusters with the Prometheus operator.'),
  ingress: z
    .strictObject({
      className: name.optional(),
      tlsSecret: name.optional(),
      annotations: z.record(z.string().min(1).max(317), z.string().max(4096)).default({}),
    })
    .prefault({})
    .describe('Ingress of tenants, used with a baseDomain.'),
  baseDomain: z.string().max(253).optional().describe('Parent domain of the subdomains of tenants.'),
});

/** Description of an installation in the chart's ConfigMap: names, images and addresses. */
export type Installation = Readonly<z.output<typeof installationSchema>> & { readonly namespace: string };

function refuse(message: string): AppError {
  return operatorError('INSTALLATION_CONFIG_INVALID', message);
}

/** Whether a ConfigMap describes an installation; children of ValidatorSets carry the same label. */
export function describesInstallation({ metadata }: KubeObject): boolean {
  const { labels: found = {} } = metadata;
  return found[labels.installation] !== undefined && found[labels.managedBy] !== MANAGED_BY;
}

/**
 * The installation of a namespace, from the ConfigMaps there.
 * @throws AppError invalid INSTALLATION_CONFIG_INVALID with a message that names the setting
 */
export function parseInstallation(configMaps: readonly KubeObject[]): Installation {
  const found = configMaps.filter(
    (each) => describesInstallation(each) && isRecord(each['data']) && INSTALLATION_KEY in each['data'],
  );
  const [only, second] = found;
  if (only === undefined) {
    throw refuse(
      `There is no ConfigMap with the label ${labels.installation} and the key ${INSTALLATION_KEY}; install the chart`,
    );
  }
  if (second !== undefined) {
    const names = found.map(({ metadata }) => metadata.name).join(', ');
    throw refuse(`Several ConfigMaps describe an installation: ${names}; keep one per namespace`);
  }
  return parseDescription(only);
}

function parseDescription({ metadata, data }: KubeObject): Installation {
  const place = `${INSTALLATION_KEY} of ConfigMap ${metadata.name}`;
  const text = isRecord(data) ? data[INSTALLATION_KEY] : undefined;
  const result = installationSchema.safeParse(parseJson(text, place));
  if (!result.success) {
    const issue = result.error.issues[0];
    throw refuse(`${place}: ${issue?.path.join('.') || 'object'}: ${issue?.message ?? 'malformed'}`);
  }
  const { installation } = result.data;
  if (metadata.labels?.[labels.installation] !== installation) {
    throw refuse(`${place}: installation: ${installation} differs from the label`);
  }
  return { ...result.data, namespace: metadata.namespace ?? '' };
}

function parseJson(text: unknown, place: string): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    throw refuse(`${place} is not JSON`);
  }
}
