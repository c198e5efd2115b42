import { labels, OPERATOR_CLIENT_ID } from '../../../api/names.ts';
import { HTTPS_PORT, OPS_PORT, type RenderInput, selectorLabels } from './input.ts';

const NATS_PORT = 4222;
const OTLP_PORT = 4318;
const DNS_PORT = 53;

const tcp = (...ports: readonly number[]) =>
  [...new Set(ports)].sort((a, b) => a - b).map((port) => ({ port, protocol: 'TCP' }));

const podsWith = (key: string, values: readonly string[]) => ({
  podSelector: { matchExpressions: [{ key, operator: 'In', values: [...values] }] },
});

/** Validators of all sets of the installation, because a register that changes its set has members of both. */
const validators = {
  podSelector: { matchExpressions: [{ key: labels.validatorSet, operator: 'Exists' }] },
};

const namespaceOf = (name: string) => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
});

function ingress({ set, installation }: RenderInput) {
  const { allowedClients, metricsNamespaces } = installation.networkPolicies;
  const { namespace, operatorNamespace = namespace } = installation;
  const ports = tcp(set.spec.service.port, HTTPS_PORT);
  const from = [
    validators,
    ...(allowedClients.length === 0 ? [] : [podsWith(labels.clientId, allowedClients)]),
    ...(operatorNamespace === namespace
      ? []
      : [{ ...namespaceOf(operatorNamespace), ...podsWith(labels.clientId, [OPERATOR_CLIENT_ID]) }]),
  ];
  const readers = metricsNamespaces.map(namespaceOf);
  return [{ from, ports }, ...(readers.length === 0 ? [] : [{ from: readers, ports: tcp(OPS_PORT) }])];
}

function natsPorts({ endpoints }: RenderInput['installation']) {
  const ports = (endpoints.nats.url ?? '')
    .split(',')
    .map((each) => Number(/:(\d{1,5})$/.exec(each)?.[1] ?? NATS_PORT));
  return tcp(...ports);
}

function egress({ set, installation }: RenderInput) {
  const { tenant, wallet, register } = installation.endpoints;
  const { identity, validators: settings } = installation;
  const service = (name: string, ...ports: readonly number[]) => ({
    to: [podsWith(labels.clientId, [`service-${name}`])],
    ports: tcp(...ports),
  });
  const dns = ['UDP', 'TCP'].map((protocol) => ({ port: DNS_PORT, protocol }));
  const issuer =
    identity.provider === 'spire'
      ? []
      : [
          {
            to: [{ podSelector: { matchLabels: { [labels.name]: 'svid-issuer' } } }],
            ports: tcp(Number(new URL(identity.issuer).port || 443)),
          },
        ];
  const traces =
    settings.tracingEndpoint === undefined
      ? []
      : [{ ports: tcp(Number(new URL(settings.tracingEndpoint).port || OTLP_PORT)) }];
  return [
    { ports: dns },
    { to: [validators], ports: tcp(set.spec.service.port, HTTPS_PORT) },
    service('tenant', tenant.https.port, tenant.grpc.port, tenant.mtls.port),
    service('wallet', wallet.grpc.port),
    service('register', register.grpc.port),
    ...issuer,
    // the address of the NATS servers may be outside the cluster
    { ports: natsPorts(installation) },
    ...traces,
  ];
}

/** Allowed traffic from and to the members; everything else is denied. */
export function networkPolicySpec(input: RenderInput) {
  return {
    podSelector: { matchLabels: selectorLabels(input.set) },
    policyTypes: ['Ingress', 'Egress'],
    ingress: ingress(input),
    egress: egress(input),
  };
}
