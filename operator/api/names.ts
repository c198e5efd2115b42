import { operatorError } from '../errors.ts';

export const API_GROUP = 'chancery.dev';
export const API_VERSION = 'v1alpha1';
export const API_GROUP_VERSION = `${API_GROUP}/${API_VERSION}`;
/** `kubectl get chancery` lists all three kinds. */
export const CATEGORY = 'chancery';

/** Finalizer that keeps an object until its resources outside Kubernetes are cleaned up. */
export const FINALIZER = `${API_GROUP}/cleanup`;

/** Annotations that people set. */
export const annotations = {
  /** `"true"`: reconciliation is paused. */
  paused: `${API_GROUP}/paused`,
  /** The object's uid: its finalizer is removed without cleanup. */
  forceDelete: `${API_GROUP}/force-delete`,
  /** Any new value: reconcile now. */
  reconcileAt: `${API_GROUP}/reconcile-at`,
  /** `"true"` on a ValidatorSet: a version below the running one is accepted. */
  allowDowngrade: `${API_GROUP}/allow-downgrade`,
  /** The register id: a register that other installations replicate may be deleted. */
  confirmDelete: `${API_GROUP}/confirm-delete`,
  /** The pod's uid, on a pod: the rollout replaces it although a gate refuses. */
  forceRoll: `${API_GROUP}/force-roll`,
} as const;

/** Annotations and labels that the operator and the chart set. */
export const labels = {
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  component: 'app.kubernetes.io/component',
  partOf: 'app.kubernetes.io/part-of',
  managedBy: 'app.kubernetes.io/managed-by',
  /** Name of the installation; also on the ConfigMap that describes it. */
  installation: `${API_GROUP}/installation`,
  /** Client id of a service; its SPIFFE id ends with it. */
  clientId: `${API_GROUP}/client-id`,
  validatorSet: `${API_GROUP}/validator-set`,
  register: `${API_GROUP}/register`,
  tenant: `${API_GROUP}/tenant`,
  /** `"true"`: never pruned by the operator. */
  retain: `${API_GROUP}/retain`,
  /** When the member of a volume claim was removed from its set; RFC 3339. */
  leftAt: `${API_GROUP}/left-at`,
  /** Hash of the configuration, on the pod template; a change starts a rollout. */
  configHash: `${API_GROUP}/config-hash`,
} as const;

/** Client id of the operator in every installation. */
export const OPERATOR_CLIENT_ID = 'service-operator';

export const MANAGED_BY = 'chancery-operator';
export const PART_OF = 'chancery';

/**
 * Longest names, in characters. Pods and revisions of a set append up to 11 characters to its name, Services 8. The
 * result must fit a DNS label. Names of the other kinds are values of labels.
 */
export const nameLimits = { validatorSet: 40, register: 63, tenant: 63 } as const;

/** Largest number of members of a set; the policy of a register has the same limit. */
export const MAX_REPLICAS = 100;

export type ManagedKind = 'Register' | 'ValidatorSet' | 'Tenant';

/** Field managers of server-side apply: one for a controller's children, one for its status. */
export function fieldManagers(kind: ManagedKind): { readonly children: string; readonly status: string } {
  const children = `${PART_OF}-${kind.toLowerCase()}`;
  return { children, status: `${children}-status` };
}

/** Names of the children of a ValidatorSet. */
interface ValidatorSetNames {
  readonly statefulSet: string;
  readonly serviceAccount: string;
  readonly configMap: string;
  /** Headless Service: one DNS name per pod. */
  readonly headlessService: string;
  /** Service that selects any ready member. */
  readonly service: string;
  readonly disruptionBudget: string;
  readonly networkPolicy: string;
  readonly podMonitor: string;
  /** Name of the claim template; a claim is `{claim}-{pod}`. */
  readonly claim: string;
}

/**
 * Names of the children of a ValidatorSet.
 * @throws AppError invalid INVALID_NAME for a name that the API server does not accept
 */
export function validatorSetNames(name: string): ValidatorSetNames {
  if (name.length > nameLimits.validatorSet || !/^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(name)) {
    throw operatorError(
      'INVALID_NAME',
      `A ValidatorSet cannot be called ${name.slice(0, 64)}; use at most ${nameLimits.validatorSet} lower-case letters, digits and hyphens`,
    );
  }
  return {
    statefulSet: name,
    serviceAccount: `validator-${name}`,
    configMap: `${name}-config`,
    headlessService: `${name}-members`,
    service: name,
    disruptionBudget: name,
    networkPolicy: name,
    podMonitor: name,
    claim: 'data',
  };
}

/** Name of a member's pod; the status lists the member under this name. */
export function podName(setName: string, ordinal: number): string {
  return `${setName}-${ordinal}`;
}

/** The ordinal of a pod of a set; undefined for any other pod. */
export function findOrdinal(setName: string, pod: string): number | undefined {
  const ordinal = pod.startsWith(`${setName}-`) ? pod.slice(setName.length + 1) : '';
  return /^(?:0|[1-9]\d{0,2})$/.test(ordinal) ? Number(ordinal) : undefined;
}

/** Name of a member's volume claim. */
export function claimName(setName: string, ordinal: number): string {
  return `${validatorSetNames(setName).claim}-${podName(setName, ordinal)}`;
}

/** Client id and validator id of a member. Derived from the pod's name, so that a replaced pod keeps its identity. */
export function validatorId(pod: string): string {
  return `validator-${pod}`;
}

/** The SPIFFE id of a client of an installation. */
export function spiffeId(installation: string, clientId: string): string {
  return `spiffe://${installation}/service/${clientId}`;
}

/**
 * Idempotency key of a call that creates something outside Kubernetes: the uid of the custom resource, with a suffix
 * where one resource creates several things. A call repeated after a crash creates nothing twice.
 * @throws AppError invalid INVALID_UID
 */
export function idempotencyKey(uid: string, part?: string): string {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uid)) {
    throw operatorError('INVALID_UID', 'The object has no uid; the API server has not stored it yet');
  }
  return part === undefined ? uid : `${uid}/${part}`;
}

interface Annotated {
  readonly uid: string;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Whether reconciliation of an object is paused. */
export function isPaused({ annotations: set }: Pick<Annotated, 'annotations'>): boolean {
  return set?.[annotations.paused] === 'true';
}

/** `yes` only for the object's own uid, so that the annotation of an earlier object of this name has no effect. */
export function forceDeletion({ uid, annotations: set }: Annotated): 'no' | 'wrong-uid' | 'yes' {
  const requested = set?.[annotations.forceDelete];
  if (requested === undefined) return 'no';
  return requested === uid ? 'yes' : 'wrong-uid';
}
