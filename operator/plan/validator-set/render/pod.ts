import { labels, validatorId } from '../../../api/names.ts';
import { canonicalQuantity } from '../../../api/quantity.ts';
import {
  childLabels,
  HTTPS_PORT,
  namesOf,
  OPS_PORT,
  paths,
  type RenderInput,
  selectorLabels,
} from './input.ts';
import { CONTAINER } from './settings.ts';

const USER = 65_532;

/** Drops undefined members, because server-side apply would own them as null. */
function present<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** Image of a set: spec.image, or the installation's image with the version of the set as tag. */
export function imageOf({ set, installation }: Pick<RenderInput, 'set' | 'installation'>): string {
  const { image, version } = set.spec;
  if (image !== undefined) return image;
  const { validator } = installation.images;
  if (version === undefined) return validator;
  const bare = validator.split('@')[0] ?? validator;
  const slash = bare.lastIndexOf('/');
  const tag = bare.indexOf(':', slash + 1);
  return `${tag < 0 ? bare : bare.slice(0, tag)}:${version}`;
}

function environment({ set, installation }: RenderInput) {
  const { headlessService } = namesOf(set);
  const { namespace } = set.metadata;
  const { secret } = installation.endpoints.nats;
  const address = `$(POD_NAME).${headlessService}.${namespace}.svc:${set.spec.service.port}`;
  return [
    { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
    { name: 'CHANCERY_VALIDATOR_ID', value: validatorId('$(POD_NAME)') },
    { name: 'CHANCERY_VALIDATOR_ENDPOINT', value: address },
    ...(secret === undefined ? [] : [{ name: 'NATS_URL', valueFrom: { secretKeyRef: { ...secret } } }]),
  ];
}

/** Volume of the identity: the SPIFFE Workload API, or a ServiceAccount token for the svid-issuer. */
function identityVolume({ installation }: RenderInput) {
  const { identity, installation: name } = installation;
  if (identity.provider === 'spire') {
    const csi = { driver: identity.csiDriver, readOnly: true };
    return { volume: { name: 'identity', csi }, mountPath: paths.workloadApi };
  }
  const audience = `spiffe://${name}/service/svid-issuer`;
  const items = [{ key: identity.caKey, path: 'ca.crt' }];
  const sources = [
    { serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } },
    { configMap: { name: identity.caConfigMap, items } },
  ];
  return {
    volume: { name: 'identity', projected: { defaultMode: 0o644, sources } },
    mountPath: paths.identity,
  };
}

function volumes(input: RenderInput) {
  const { caConfigMap, caKey } = input.installation.endpoints.nats;
  const ca = {
    name: 'nats-ca',
    configMap: { name: caConfigMap, defaultMode: 0o644, items: [{ key: caKey, path: 'ca.crt' }] },
  };
  return [identityVolume(input).volume, ...(caConfigMap === undefined ? [] : [ca])];
}

function mounts(input: RenderInput) {
  const { caConfigMap } = input.installation.endpoints.nats;
  return [
    { name: namesOf(input.set).claim, mountPath: paths.data },
    { name: 'identity', mountPath: identityVolume(input).mountPath, readOnly: true },
    ...(caConfigMap === undefined ? [] : [{ name: 'nats-ca', mountPath: paths.natsCa, readOnly: true }]),
  ];
}

interface Quantities {
  readonly requests?: Readonly<Record<string, string>> | undefined;
  readonly limits?: Readonly<Record<string, string>> | undefined;
}

/** Resources with canonical quantities. Other forms would be rewritten by the API server and look changed forever. */
function resources({ requests, limits }: Quantities) {
  const canonical = (list: Readonly<Record<string, string>> | undefined) =>
    list === undefined
      ? undefined
      : Object.fromEntries(Object.entries(list).map(([name, value]) => [name, canonicalQuantity(value)]));
  return present({ requests: canonical(requests), limits: canonical(limits) });
}

function probes() {
  const ask = (path: string) => ({ httpGet: { path, port: 'ops', scheme: 'HTTP' } });
  return {
    // recovery of a long log takes time, and the identity depends on other services
    startupProbe: { ...ask('/alive'), periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 150 },
    livenessProbe: { ...ask('/alive'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    readinessProbe: { ...ask('/ready'), periodSeconds: 3, timeoutSeconds: 3, failureThreshold: 2 },
  };
}

function container(input: RenderInput) {
  const { set, installation } = input;
  const port = (name: string, containerPort: number) => ({ name, containerPort, protocol: 'TCP' });
  return {
    name: CONTAINER,
    image: imageOf(input),
    imagePullPolicy: installation.images.pullPolicy,
    envFrom: [{ configMapRef: { name: namesOf(set).configMap } }],
    env: environment(input),
    ports: [port('grpc', set.spec.service.port), port('https', HTTPS_PORT), port('ops', OPS_PORT)],
    ...probes(),
    resources: resources(set.spec.resources ?? installation.validators.resources),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: mounts(input),
  };
}

/** Topology spread: over hosts by default; a constraint without a selector applies to the members. */
function spread({ set }: RenderInput) {
  const labelSelector = { matchLabels: selectorLabels(set) };
  const { topologySpreadConstraints: given } = set.spec;
  if (given !== undefined)
    return given.map((each) => ({ ...each, labelSelector: each.labelSelector ?? labelSelector }));
  return [
    {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector,
    },
  ];
}

/**
 * The pod template. It depends on the spec and the installation only, not on the version of the operator. A change of this
 * function restarts validators in every cluster.
 * @param configHash hash of the settings, so that their change starts a rollout
 */
export function podTemplate(input: RenderInput, configHash: string) {
  const { set, installation } = input;
  const { spec } = set;
  const pullSecrets = installation.images.pullSecrets.map((name) => ({ name }));
  return {
    metadata: {
      labels: { ...spec.podLabels, ...childLabels(input) },
      annotations: { ...spec.podAnnotations, [labels.configHash]: configHash },
    },
    spec: {
      serviceAccountName: namesOf(set).serviceAccount,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 30,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        fsGroup: USER,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      topologySpreadConstraints: spread(input),
      containers: [container(input)],
      volumes: volumes(input),
      ...present({
        nodeSelector: spec.nodeSelector,
        tolerations: spec.tolerations,
        affinity: spec.affinity,
        priorityClassName: spec.priorityClassName,
        imagePullSecrets: pullSecrets.length === 0 ? undefined : pullSecrets,
      }),
    },
  };
}
