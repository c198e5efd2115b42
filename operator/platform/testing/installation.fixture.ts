import { INSTALLATION_KEY, type Installation, parseInstallation } from '../../api/installation.ts';
import { labels } from '../../api/names.ts';
import type { KubeObject } from '../../kube/resource.ts';

/** A default description as the chart writes it. */
export const installationText = {
  installation: 'acme.chancery.local',
  version: '0.1.0',
  images: { validator: 'chancery.local/validator:0.1.0' },
  identity: { provider: 'serviceAccount', issuer: 'https://svid-issuer:8443' },
  endpoints: {
    tenant: { https: 'service-tenant:7443', grpc: 'service-tenant:7000', mtls: 'service-tenant:8443' },
    wallet: { https: 'service-wallet:7443', grpc: 'service-wallet:7000' },
    register: { https: 'service-register:7443', grpc: 'service-register:7000' },
    nats: { secret: { name: 'chancery-nats', key: 'validator' }, caConfigMap: 'chancery-nats-ca' },
  },
};

export const spireText = {
  ...installationText,
  identity: { provider: 'spire' },
  endpoints: { ...installationText.endpoints, nats: { url: 'nats://nats:4222' } },
};

/** The ConfigMap of an installation. */
export function installationMap(text: object = installationText, namespace = 'acme'): KubeObject {
  const found = { [labels.installation]: installationText.installation };
  const metadata = { name: 'chancery-installation', namespace, labels: found };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { [INSTALLATION_KEY]: JSON.stringify(text) },
  };
}

export function testInstallation(text: object = installationText): Installation {
  return parseInstallation([installationMap(text)]);
}
