/** An issuer and pods with identities, as the chart and the operator render them. */

export interface IssuerLocation {
  readonly namespace: string;
  readonly installation: string;
  /** Reference of an image, without its name: `registry/` and `:tag` around it. */
  readonly image: (name: string) => string;
}

export const AUTHORITY_SECRET = 'chancery-identity-authority';
export const CA_CONFIG_MAP = 'chancery-identity-ca';

export function audienceOf({ installation }: IssuerLocation): string {
  return `spiffe://${installation}/service/svid-issuer`;
}

const restricted = {
  container: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  pod: {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  },
} as const;

const probes = {
  livenessProbe: { httpGet: { path: '/alive', port: 9090 }, periodSeconds: 5 },
  readinessProbe: { httpGet: { path: '/ready', port: 9090 }, periodSeconds: 1 },
} as const;

const variables = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

export function account({ namespace }: Pick<IssuerLocation, 'namespace'>, name: string) {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
}

export function namespaceOf(name: string) {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

/** Role of the issuer, and the objects that it fills. */
export function authorityObjects({ namespace }: IssuerLocation): readonly object[] {
  const metadata = (name: string) => ({ name, namespace });
  const rbac = 'rbac.authorization.k8s.io';
  const rule = (resource: string, name: string) => ({
    apiGroups: [''],
    resources: [resource],
    resourceNames: [name],
    verbs: ['get', 'patch'],
  });
  const rules = [rule('secrets', AUTHORITY_SECRET), rule('configmaps', CA_CONFIG_MAP)];
  const review = { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] };
  const subjects = [{ kind: 'ServiceAccount', name: 'svid-issuer', namespace }];
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: metadata(AUTHORITY_SECRET) },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata(CA_CONFIG_MAP) },
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: metadata('svid-issuer'), rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: metadata('svid-issuer'),
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'svid-issuer' },
      subjects,
    },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: namespace }, rules: [review] },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: namespace },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: namespace },
      subjects,
    },
  ];
}

export function issuerObjects(place: IssuerLocation): readonly object[] {
  const { namespace, installation, image } = place;
  const labels = { app: 'svid-issuer' };
  const container = {
    name: 'svid-issuer',
    image: image('svid-issuer'),
    imagePullPolicy: 'IfNotPresent',
    env: variables({
      CHANCERY_INSTALLATION: installation,
      CHANCERY_NAMESPACE: namespace,
      CHANCERY_SERVICE_ACCOUNTS: 'service-gateway,service-wallet',
    }),
    ports: [{ containerPort: 8443 }, { containerPort: 9090 }],
    securityContext: restricted.container,
    ...probes,
  };
  const spec = {
    serviceAccountName: 'svid-issuer',
    securityContext: restricted.pod,
    containers: [container],
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'svid-issuer', namespace },
      spec: { selector: labels, ports: [{ port: 8443 }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'svid-issuer', namespace },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ];
}

/** A pod that is ready once it has an identity: a gateway, which needs nothing else. */
export function podWithIdentity(place: IssuerLocation, name: string, serviceAccountName: string): object {
  const { namespace, installation, image } = place;
  const sources = [
    { serviceAccountToken: { audience: audienceOf(place), expirationSeconds: 3600, path: 'token' } },
    { configMap: { name: CA_CONFIG_MAP, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  ];
  const container = {
    name: 'gateway',
    image: image('gateway'),
    imagePullPolicy: 'IfNotPresent',
    env: variables({
      CHANCERY_INSTALLATION: installation,
      CHANCERY_IDENTITY_ISSUER: 'https://svid-issuer:8443',
    }),
    volumeMounts: [{ name: 'identity', mountPath: '/var/run/chancery/identity', readOnly: true }],
    securityContext: restricted.container,
    ...probes,
  };
  const spec = {
    serviceAccountName,
    automountServiceAccountToken: false,
    securityContext: restricted.pod,
    containers: [container],
    volumes: [{ name: 'identity', projected: { sources } }],
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec };
}
