import { API_GROUP, API_VERSION, annotations, FINALIZER } from './names.ts';

/**
 * ValidatingAdmissionPolicies for rules that a CRD cannot express, because they depend on the client, on annotations or
 * on the status. There are no webhooks: a webhook that is down stops the writes of the cluster.
 */

/** Groups whose members may create and delete System registers, unless the chart names others. */
const SYSTEM_REGISTER_GROUPS = [`${API_GROUP}:system-registers`, 'system:masters'] as const;

/** RBAC verb on the three kinds: permits the annotation that skips the cleanup of an object. */
const FORCE_DELETE_VERB = 'force-delete';

/** Controllers that delete objects on behalf of a deleted namespace or owner. */
const GARBAGE_COLLECTORS = [
  'system:kube-controller-manager',
  'system:serviceaccount:kube-system:namespace-controller',
  'system:serviceaccount:kube-system:generic-garbage-collector',
];

const KIND_RESOURCES = ['registers', 'tenants', 'validatorsets'];

interface Admission {
  readonly name: string;
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  readonly resources: readonly string[];
  /** Match conditions: the policy applies only where all hold. */
  readonly when: Readonly<Record<string, string>>;
  readonly variables?: Readonly<Record<string, string>>;
  readonly allow: string;
  readonly message: string;
}

const annotation = (object: string, name: string): string =>
  `(has(${object}.metadata.annotations) ? ${object}.metadata.annotations[?'${name}'].orValue('') : '')`;

const mayDo = (verb: string, subresource = ''): string =>
  [
    `authorizer.group('${API_GROUP}').resource(request.resource.resource)`,
    ...(subresource === '' ? [] : [`.subresource('${subresource}')`]),
    `.namespace(request.namespace).name(request.name).check('${verb}').allowed()`,
  ].join('');

/** Groups that may create and delete System registers; `groups` is a CEL list of texts. */
function systemRegisters(groups: string): Admission {
  return {
    name: 'system-registers',
    operations: ['CREATE', 'DELETE'],
    resources: ['registers'],
    when: {
      system: "(request.operation == 'DELETE' ? oldObject : object).spec.?purpose.orValue('') == 'System'",
      'not-collected': `request.operation != 'DELETE' || !(request.userInfo.username in ${JSON.stringify(GARBAGE_COLLECTORS)})`,
    },
    allow: `has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in ${groups})`,
    message:
      'spec.purpose: only the groups that the chart chancery-crds names under systemRegisterGroups create and delete System registers; write purpose: General or ask one of them',
  };
}

/** Major, minor and patch as one number; the schema keeps each below a million. */
const rank = (version: string): string =>
  [0, 1, 2]
    .map((place) => `int(${version}.split('-')[0].split('.')[${place}])`)
    .reduce((high, low) => `(${high}) * 1000000 + ${low}`);

const downgrades: Admission = {
  name: 'validator-set-downgrades',
  operations: ['UPDATE'],
  resources: ['validatorsets'],
  when: {
    'version-changes':
      "has(object.spec.version) && object.spec.version != oldObject.spec.?version.orValue('')",
    'version-is-known':
      "object.spec.version.matches('^[0-9]+[.][0-9]+[.][0-9]+') && oldObject.?status.?version.orValue('').matches('^[0-9]+[.][0-9]+[.][0-9]+')",
    'not-allowed-by-hand': `${annotation('object', annotations.allowDowngrade)} != 'true'`,
  },
  variables: {
    wanted: rank('object.spec.version'),
    running: rank('oldObject.status.version'),
    wantedIsPrerelease: "object.spec.version.contains('-')",
    runningIsPrerelease: "oldObject.status.version.contains('-')",
  },
  allow:
    'variables.wanted > variables.running || (variables.wanted == variables.running && (!variables.wantedIsPrerelease || variables.runningIsPrerelease))',
  message: `spec.version: below status.version, the running version; write a newer version or annotate ${annotations.allowDowngrade}: "true"`,
};

const forceDeletion: Admission = {
  name: 'force-deletion',
  operations: ['CREATE', 'UPDATE'],
  resources: KIND_RESOURCES,
  when: {
    'annotation-is-set': `${annotation('object', annotations.forceDelete)} != ''`,
    'annotation-changes': `request.operation == 'CREATE' || ${annotation('object', annotations.forceDelete)} != ${annotation('oldObject', annotations.forceDelete)}`,
  },
  allow: mayDo(FORCE_DELETE_VERB),
  message: `metadata.annotations[${annotations.forceDelete}]: skips the cleanup and needs the RBAC verb ${FORCE_DELETE_VERB} on this object; delete the object without it, or ask a person who has the verb`,
};

const finalizers: Admission = {
  name: 'finalizers',
  operations: ['UPDATE'],
  resources: KIND_RESOURCES,
  when: {
    'was-there': `has(oldObject.metadata.finalizers) && '${FINALIZER}' in oldObject.metadata.finalizers`,
    'is-gone': `!has(object.metadata.finalizers) || !('${FINALIZER}' in object.metadata.finalizers)`,
  },
  // with a valid force-delete annotation any client may remove it: the operator may be gone with its namespace
  allow: `${annotation('oldObject', annotations.forceDelete)} == oldObject.metadata.uid || ${mayDo('update', 'finalizers')}`,
  message: `metadata.finalizers: the operator removes ${FINALIZER} when its work is done; to skip the cleanup annotate ${annotations.forceDelete}: <metadata.uid>`,
};

/** The policies; `groups` is a CEL list of texts, or the chart's template expression for one. */
export function admissions(groups: string = JSON.stringify(SYSTEM_REGISTER_GROUPS)): readonly Admission[] {
  return [systemRegisters(groups), downgrades, forceDeletion, finalizers];
}

/** Policy and binding as objects of the API server. */
export function admissionObjects(admission: Admission): readonly [policy: object, binding: object] {
  const name = `${admission.name}.${API_GROUP}`;
  const entries = (of: Readonly<Record<string, string>>) =>
    Object.entries(of).map(([label, expression]) => ({ name: label, expression }));
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: [API_GROUP],
            apiVersions: [API_VERSION],
            operations: admission.operations,
            resources: admission.resources,
          },
        ],
      },
      matchConditions: entries(admission.when),
      ...(admission.variables === undefined ? {} : { variables: entries(admission.variables) }),
      validations: [{ expression: admission.allow, message: admission.message, reason: 'Forbidden' }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  };
  return [policy, binding];
}
