import type { Installation } from '../../api/installation.ts';
import { labels, MANAGED_BY, PART_OF } from '../../api/names.ts';
import type { Tenant } from '../../api/tenant.ts';
import type { Child } from '../../kube/apply.ts';
import { ingresses } from '../../kube/kinds.ts';
import { apiVersionOf } from '../../kube/resource.ts';

const GATEWAY = { name: 'service-gateway', port: { number: 8080 } };

/** The Ingress of an organisation's subdomain; none without a baseDomain. */
export function tenantRoute({ metadata, spec }: Tenant, installation: Installation): readonly Child[] {
  const { baseDomain, ingress } = installation;
  if (baseDomain === undefined) return [];
  const host = `${spec.subdomain}.${baseDomain}`;
  const { className, tlsSecret, annotations } = ingress;
  const object = {
    apiVersion: apiVersionOf(ingresses),
    kind: ingresses.kind,
    metadata: {
      name: `tenant-${metadata.name}`,
      namespace: metadata.namespace,
      annotations,
      labels: {
        [labels.name]: 'gateway',
        [labels.component]: 'tenant-route',
        [labels.partOf]: PART_OF,
        [labels.managedBy]: MANAGED_BY,
        [labels.installation]: installation.installation,
        [labels.tenant]: metadata.name,
      },
    },
    spec: {
      ...(className === undefined ? {} : { ingressClassName: className }),
      ...(tlsSecret === undefined ? {} : { tls: [{ hosts: [host], secretName: tlsSecret }] }),
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: GATEWAY } }] } }],
    },
  };
  return [{ resource: ingresses, object }];
}
