import { operatorError } from '../errors.ts';

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly {
    readonly manager?: string;
    readonly operation?: string;
    /** A tree of the fields that the manager owns. */
    readonly fieldsV1?: unknown;
  }[];
}

/**
 * An object of any kind, as the API server sent it. Generated models would drop unknown members; parsers create typed
 * views where they are needed.
 */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly [member: string]: unknown;
}

/** Group, version, kind and plural of a resource. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Path of an object, a collection or a subresource. */
export interface ResourcePath {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** `plural.group`, as RBAC messages write it; the plural alone in the core group. */
export function resourceName({ group, plural }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** `apiVersion` of the objects of a resource. */
export function apiVersionOf({ group, version }: Resource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The URL path below the server's address. */
export function pathOf({ resource, namespace, name, subresource }: ResourcePath): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${apiVersionOf(resource)}`;
  const within =
    resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  return `${root}${within}/${resource.plural}${object}${subresource === undefined ? '' : `/${subresource}`}`;
}

/** `namespace/name`; the name alone for a cluster-scoped object. */
export function keyOf({ namespace, name }: Pick<Metadata, 'namespace' | 'name'>): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** The two parts of a key. */
export function splitKey(key: string): { readonly namespace: string | undefined; readonly name: string } {
  const slash = key.indexOf('/');
  return slash < 0
    ? { namespace: undefined, name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** The owner reference of the controller of an object. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((each) => each.controller === true);
}

/**
 * Whether `left` is an earlier resource version than `right` of one object. Versions that are not numbers cannot be
 * compared; the answer is then false.
 */
export function isEarlier(left: string | undefined, right: string | undefined): boolean {
  const number = /^\d+$/;
  return (
    left !== undefined &&
    right !== undefined &&
    number.test(left) &&
    number.test(right) &&
    BigInt(left) < BigInt(right)
  );
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isMetadata(value: unknown): value is Metadata {
  return isRecord(value) && typeof value['name'] === 'string';
}

/**
 * Checks the members that every object has.
 * @param fallback kind and version of list items, which the API server omits
 * @throws AppError bad_gateway KUBE_NOT_AN_OBJECT
 */
export function parseObject(value: unknown, fallback?: Resource): KubeObject {
  const metadata = isRecord(value) ? value['metadata'] : undefined;
  if (isRecord(value) && isMetadata(metadata)) {
    const apiVersion = value['apiVersion'] ?? (fallback === undefined ? undefined : apiVersionOf(fallback));
    const kind = value['kind'] ?? fallback?.kind;
    if (typeof apiVersion === 'string' && typeof kind === 'string') {
      return { ...value, apiVersion, kind, metadata };
    }
  }
  throw operatorError('KUBE_NOT_AN_OBJECT', 'The API server sent something that is not a Kubernetes object');
}

/** Drops managedFields and kubectl's last-applied annotation, which are half of the bytes of a list. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, annotations, ...metadata } = object.metadata;
  if (annotations === undefined) return { ...object, metadata };
  const { 'kubectl.kubernetes.io/last-applied-configuration': __, ...kept } = annotations;
  return { ...object, metadata: { ...metadata, annotations: kept } };
}
