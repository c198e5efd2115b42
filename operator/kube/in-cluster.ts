import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { operatorError } from '../errors.ts';
import type { ClusterCredentials } from './credentials.ts';

interface InClusterOptions {
  /** KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. */
  readonly host: string | undefined;
  readonly port: string | undefined;
  /** Directory of `token` and `ca.crt`; the kubelet's default when absent. */
  readonly directory?: string;
}

/**
 * Credentials of a pod's ServiceAccount. The kubelet replaces the files, so they are read each time.
 * @throws AppError invalid NOT_IN_A_CLUSTER
 */
export function inClusterCredentials(options: InClusterOptions): ClusterCredentials {
  const { host, port, directory = '/var/run/secrets/kubernetes.io/serviceaccount' } = options;
  if (host === undefined || port === undefined) {
    throw operatorError('NOT_IN_A_CLUSTER', 'Neither KUBECONFIG nor KUBERNETES_SERVICE_HOST is set');
  }
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return {
    read: async () => {
      const [token, ca] = await Promise.all([
        readFile(join(directory, 'token'), 'utf8'),
        readFile(join(directory, 'ca.crt'), 'utf8'),
      ]);
      return { server, ca, authorization: `Bearer ${token.trim()}` };
    },
  };
}
