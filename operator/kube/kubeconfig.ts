import type { RequestOptions } from 'node:https';
import { operatorError } from '../errors.ts';
import type { ClusterAccess, ClusterCredentials } from './credentials.ts';
import { isRecord } from './resource.ts';

/**
 * The part of `KubeConfig` of @kubernetes/client-node that is used: kubeconfig files, exec plugins and OIDC.
 */
export interface KubeConfigSource {
  getCurrentCluster(): {
    readonly server: string;
    readonly skipTLSVerify?: boolean;
    readonly tlsServerName?: string;
  } | null;
  /** Fills in certificates and the authorization header of the current user. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

/** Credentials of a kubeconfig file. The library is imported here only, because it costs 50 MB that a pod does not need. */
export async function kubeconfigCredentials(path: string): Promise<ClusterCredentials> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  return credentialsOf(() => {
    const config = new KubeConfig();
    config.loadFromFile(path);
    return config;
  });
}

/**
 * Credentials of a kubeconfig.
 * @param load reads the configuration again: `() => { const config = new KubeConfig(); config.loadFromDefault(); return config; }`
 */
export function credentialsOf(load: () => KubeConfigSource): ClusterCredentials {
  return { read: async () => readAccess(load()) };
}

async function readAccess(config: KubeConfigSource): Promise<ClusterAccess> {
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw operatorError('KUBECONFIG_INVALID', 'The kubeconfig names no current cluster');
  }
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  return {
    server: cluster.server,
    ca: pem(options.ca),
    cert: pem(options.cert),
    key: pem(options.key),
    servername: cluster.tlsServerName,
    skipVerify: cluster.skipTLSVerify === true,
    authorization: authorizationOf(options),
  };
}

function pem(value: unknown): string | Uint8Array | undefined {
  return typeof value === 'string' || value instanceof Uint8Array ? value : undefined;
}

function authorizationOf({ headers, auth }: RequestOptions): string | undefined {
  for (const [name, value] of Object.entries(isRecord(headers) ? headers : {})) {
    if (name.toLowerCase() === 'authorization' && typeof value === 'string') return value;
  }
  return typeof auth === 'string' ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined;
}
