import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { clusterApiContract } from './cluster-api.contract.ts';
import { HttpClusterApi } from './http-cluster-api.ts';

const namespace = `chancery-cluster-api-${process.pid}`;

function kubectl(args: readonly string[], input = ''): string {
  return execFileSync('kubectl', [...args], { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'inherit'] });
}

const kubeconfig = z.object({
  clusters: z.array(
    z.object({ cluster: z.object({ server: z.url(), 'certificate-authority-data': z.string() }) }),
  ),
});

const metadata = (name: string) => ({ name, namespace });

const role = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: metadata('svid-issuer'),
  rules: [
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['roots'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['configmaps'], resourceNames: ['bundle'], verbs: ['get', 'patch'] },
  ],
};

const subjects = [{ kind: 'ServiceAccount', name: 'svid-issuer', namespace }];

const objects = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata('svid-issuer') },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata('validator-main') },
  { apiVersion: 'v1', kind: 'Secret', metadata: metadata('roots') },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('bundle') },
  role,
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: metadata('svid-issuer'),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'svid-issuer' },
    subjects,
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: namespace },
    rules: [{ apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: namespace },
    subjects,
  },
  {
    // Is never scheduled: its name is all that a token needs.
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadata('main-0'),
    spec: {
      serviceAccountName: 'validator-main',
      nodeSelector: { 'chancery.dev/nowhere': 'true' },
      containers: [{ name: 'none', image: 'chancery.local/none:0' }],
    },
  },
];

clusterApiContract('Kubernetes', async () => {
  const manifest = { apiVersion: 'v1', kind: 'List', items: objects };
  kubectl(['apply', '-f', '-'], JSON.stringify(manifest));
  const { clusters } = kubeconfig.parse(JSON.parse(kubectl(['config', 'view', '--raw', '-o', 'json'])));
  const cluster = clusters[0]?.cluster;
  const { hostname, port } = new URL(cluster?.server ?? '');
  const credentialsDir = mkdtempSync(join(tmpdir(), 'chy-cluster-api-'));
  writeFileSync(join(credentialsDir, 'token'), kubectl(['create', 'token', 'svid-issuer', '-n', namespace]));
  const ca = Buffer.from(cluster?.['certificate-authority-data'] ?? '', 'base64');
  writeFileSync(join(credentialsDir, 'ca.crt'), ca);
  const api = new HttpClusterApi({ host: hostname, port: Number(port), credentialsDir, namespace });
  const bound = ['--bound-object-kind', 'Pod', '--bound-object-name', 'main-0'];
  return {
    api,
    namespace,
    podToken: (audience) =>
      kubectl([
        'create',
        'token',
        'validator-main',
        '-n',
        namespace,
        '--audience',
        audience,
        ...bound,
      ]).trim(),
    stop: async () => {
      await api.close();
      kubectl(['delete', 'namespace', namespace, '--wait=false']);
      kubectl(['delete', 'clusterrole,clusterrolebinding', namespace]);
      rmSync(credentialsDir, { recursive: true });
    },
  };
});
