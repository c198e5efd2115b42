import { apply, kubectl } from '../kubectl.ts';
import { kindFiles } from './build.ts';
import { type Beside, serverSocket, system } from './objects.ts';
import { imageOf } from './programs.ts';

const manager = 'spire-controller-manager';
const configuration = {
  apiVersion: 'spire.spiffe.io/v1alpha1',
  kind: 'ControllerManagerConfig',
  clusterName: 'main',
  trustDomain: 'acme.chancery.local',
  // the class that the chart and spire/cluster-spiffe-ids.yaml use
  className: 'spire-system-spire',
  ignoreNamespaces: ['kube-system', 'kube-public', system],
  spireServerSocketPath: serverSocket,
  leaderElection: { leaderElect: false },
  metrics: { bindAddress: '0' },
  health: { healthProbeBindAddress: ':8083' },
  gcInterval: 5_000_000_000,
};

/** The controller manager in the pod of the server. Its webhook is off, because it only validates edits. */
export const besideServer: Beside = {
  containers: [
    {
      name: manager,
      image: imageOf(manager),
      imagePullPolicy: 'IfNotPresent',
      args: ['--config=/run/spire/manager/config.json'],
      env: [{ name: 'ENABLE_WEBHOOKS', value: 'false' }],
      readinessProbe: { httpGet: { path: '/readyz', port: 8083 }, periodSeconds: 1 },
      volumeMounts: [
        { name: 'manager', mountPath: '/run/spire/manager', readOnly: true },
        { name: 'sockets', mountPath: '/run/spire/server-sockets' },
      ],
    },
  ],
  volumes: [{ name: 'manager', configMap: { name: manager } }],
};

/** Kinds, configuration and rights of the controller manager. */
export async function ensureManagerObjects(): Promise<void> {
  await kubectl('apply', '--server-side', ...kindFiles.flatMap((file) => ['-f', file]));
  await kubectl(
    'wait',
    '--for=condition=Established',
    '--timeout=60s',
    'crd/clusterspiffeids.spire.spiffe.io',
  );
  const group = 'rbac.authorization.k8s.io';
  const read = ['get', 'list', 'watch'];
  const rules = [
    { apiGroups: [''], resources: ['endpoints', 'namespaces', 'nodes', 'pods'], verbs: read },
    { apiGroups: ['spire.spiffe.io'], resources: ['*'], verbs: [...read, 'patch', 'update'] },
  ];
  const subjects = [{ kind: 'ServiceAccount', name: 'spire-server', namespace: system }];
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: manager };
  await apply(
    system,
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: system } },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: manager, namespace: system },
      data: { 'config.json': JSON.stringify(configuration) },
    },
    { apiVersion: `${group}/v1`, kind: 'ClusterRole', metadata: { name: manager }, rules },
    { apiVersion: `${group}/v1`, kind: 'ClusterRoleBinding', metadata: { name: manager }, roleRef, subjects },
  );
}
