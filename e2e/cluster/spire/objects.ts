import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { imageOf, nodeDriver } from './programs.ts';

/** SPIRE in a cluster, with the unchanged files of `spire/`. */

export const system = 'spire-system';
/** Socket of the server's command line. */
export const serverSocket = '/run/spire/server-sockets/api.sock';
/** Folder of the host with one folder per node, because all nodes may be on one host. */
const sockets = '/run/chancery-spire';

export const fileOf = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../../spire', name), 'utf8');

const named = (name: string) => ({ name, namespace: system });
const account = (name: string) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: named(name) });
const group = 'rbac.authorization.k8s.io';

type Rule = Readonly<Record<'apiGroups' | 'resources' | 'verbs', readonly string[]>> & {
  readonly resourceNames?: readonly string[];
};

/** A role and its binding. */
function granted(kind: 'Role' | 'ClusterRole', name: string, rules: readonly Rule[]): readonly object[] {
  const metadata = kind === 'Role' ? named(name) : { name };
  const subjects = [{ kind: 'ServiceAccount', name, namespace: system }];
  const roleRef = { apiGroup: group, kind, name };
  return [
    { apiVersion: `${group}/v1`, kind, metadata, rules },
    { apiVersion: `${group}/v1`, kind: `${kind}Binding`, metadata, roleRef, subjects },
  ];
}

const configMap = (name: string, data: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: named(name),
  data,
});

const ready = (port: number) => ({
  readinessProbe: { httpGet: { path: '/ready', port }, periodSeconds: 1 },
  livenessProbe: { httpGet: { path: '/live', port }, periodSeconds: 10, failureThreshold: 6 },
});

const container = (program: string, args: readonly string[]) => ({
  name: program,
  image: imageOf(program),
  imagePullPolicy: 'IfNotPresent',
  args,
});

const nodeName = { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } };

/** The rights of server and agents as spire/README.md lists them. */
const rights: readonly object[] = [
  ...granted('ClusterRole', 'spire-server', [
    { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
    { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['get'] },
  ]),
  ...granted('Role', 'spire-server', [
    { apiGroups: [''], resources: ['configmaps'], resourceNames: ['spire-bundle'], verbs: ['get', 'patch'] },
  ]),
  ...granted('ClusterRole', 'spire-agent', [{ apiGroups: [''], resources: ['nodes/pods'], verbs: ['get'] }]),
];

/** Containers beside the server and their volumes. */
export interface Beside {
  readonly containers: readonly object[];
  readonly volumes: readonly object[];
}

const data = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: named('spire-server'),
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
};

/** The server with its sidecars. */
export function serverDeployment(beside: Beside = { containers: [], volumes: [] }): object {
  const labels = { app: 'spire-server' };
  const server = {
    ...container('spire-server', ['run', '-config', '/run/spire/config/server.conf']),
    ports: [{ containerPort: 8081 }, { containerPort: 8080 }],
    ...ready(8080),
    volumeMounts: [
      { name: 'config', mountPath: '/run/spire/config', readOnly: true },
      { name: 'data', mountPath: '/run/spire/data' },
      { name: 'sockets', mountPath: '/run/spire/server-sockets' },
    ],
  };
  const volumes = [
    { name: 'config', configMap: { name: 'spire-server' } },
    { name: 'data', persistentVolumeClaim: { claimName: 'spire-server' } },
    { name: 'sockets', emptyDir: {} },
    ...beside.volumes,
  ];
  const spec = {
    serviceAccountName: 'spire-server',
    securityContext: { runAsUser: 65_532, runAsGroup: 65_532, fsGroup: 65_532 },
    containers: [server, ...beside.containers],
    volumes,
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: named('spire-server'),
    spec: {
      selector: { matchLabels: labels },
      strategy: { type: 'Recreate' },
      template: { metadata: { labels }, spec },
    },
  };
}

function daemonSet(name: string, spec: object): object {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: named(name),
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

/** The agents. They reach the kubelet by the address of the node, because names of nodes may not resolve. */
function agents(): object {
  const agent = {
    ...container('spire-agent', ['run', '-config', '/run/spire/config/agent.conf']),
    env: [
      { name: 'NODE', valueFrom: nodeName.valueFrom },
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
    ],
    securityContext: { runAsUser: 0 },
    ...ready(9982),
    volumeMounts: [
      { name: 'config', mountPath: '/run/spire/config', readOnly: true },
      { name: 'bundle', mountPath: '/run/spire/bundle', readOnly: true },
      { name: 'token', mountPath: '/var/run/secrets/tokens', readOnly: true },
      { name: 'data', mountPath: '/var/lib/spire' },
      { name: 'sockets', mountPath: '/run/spire/agent-sockets', subPathExpr: '$(NODE)' },
    ],
  };
  const token = { path: 'spire-agent', expirationSeconds: 7200, audience: 'spire-server' };
  return daemonSet('spire-agent', {
    serviceAccountName: 'spire-agent',
    hostPID: true,
    containers: [agent],
    terminationGracePeriodSeconds: 5,
    volumes: [
      { name: 'config', configMap: { name: 'spire-agent' } },
      { name: 'bundle', configMap: { name: 'spire-bundle' } },
      { name: 'token', projected: { sources: [{ serviceAccountToken: token }] } },
      { name: 'data', emptyDir: {} },
      { name: 'sockets', hostPath: { path: sockets, type: 'DirectoryOrCreate' } },
    ],
  });
}

function drivers(): object {
  const driver = {
    ...container(nodeDriver, []),
    env: [nodeName, { name: 'SOCKETS', value: sockets }],
    securityContext: { runAsUser: 0, privileged: true },
  };
  return daemonSet('spiffe-csi-driver', {
    serviceAccountName: 'spiffe-csi-driver',
    automountServiceAccountToken: false,
    hostPID: true,
    containers: [driver],
    terminationGracePeriodSeconds: 5,
  });
}

const csiDriver = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: 'csi.spiffe.io' },
  spec: {
    attachRequired: false,
    podInfoOnMount: true,
    fsGroupPolicy: 'None',
    volumeLifecycleModes: ['Ephemeral'],
  },
};

/** All objects of SPIRE except the server and the agents, which need the server's bundle. */
export const withoutAgents: readonly object[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: system } },
  ...['spire-server', 'spire-agent', 'spiffe-csi-driver'].map(account),
  ...rights,
  configMap('spire-server', { 'server.conf': fileOf('server.conf') }),
  configMap('spire-agent', { 'agent.conf': fileOf('agent.conf') }),
  configMap('spire-bundle', {}),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: named('spire-server'),
    spec: { selector: { app: 'spire-server' }, ports: [{ port: 8081 }] },
  },
  data,
  csiDriver,
  drivers(),
];

export const agentObjects: readonly object[] = [agents()];
