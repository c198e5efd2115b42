import {
  clientIdOf,
  LISTENER_PORTS,
  type ListenerName,
  listServices,
  type Service,
} from '#core/identity/services.ts';

/** Name in the chart for the pods of all ValidatorSets. */
const memberPods = 'validators';

/** The part of the catalogue of services that the chart's templates read. */
interface ChartServices {
  /** Client ids of the services that the chart runs. */
  readonly clientIds: readonly string[];
  /** Client ids of services with a schema. */
  readonly stores: readonly string[];
  /** Ingress of the chart's pods: callee, port, callers; `validators` are the pods of every set. */
  readonly edges: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  /** Egress to validators: caller, ports. The operator renders the ingress of their pods. */
  readonly toValidators: Readonly<Record<string, readonly number[]>>;
}

/** Network edges and identities of the services that run. */
export function chartServices(services = listServices()): ChartServices {
  const served = services.filter(({ status }) => status === 'served');
  const single = served.filter(({ members }) => members !== true);
  const pods = ({ name, members }: Service) => (members === true ? memberPods : clientIdOf(name));
  const portsTo = (caller: Service, callee: string) => [
    ...(caller.calls[callee] ?? []).map(portOf),
    ...(caller.name === callee ? replicaPorts(caller) : []),
  ];
  const callersOf = (callee: string, port: number) =>
    served.filter((caller) => portsTo(caller, callee).includes(port)).map(pods);
  const doorsOf = ({ name }: Service) => {
    const ports = new Set(served.flatMap((caller) => portsTo(caller, name)));
    return Object.fromEntries([...ports].map((port) => [String(port), callersOf(name, port)]));
  };
  return {
    clientIds: single.map(({ name }) => clientIdOf(name)),
    stores: single.filter(({ stores }) => stores === true).map(({ name }) => clientIdOf(name)),
    edges: Object.fromEntries(single.map((service) => [clientIdOf(service.name), doorsOf(service)])),
    toValidators: Object.fromEntries(
      single
        .filter((caller) => portsTo(caller, 'validator').length > 0)
        .map((caller) => [clientIdOf(caller.name), portsTo(caller, 'validator').toSorted((a, b) => a - b)]),
    ),
  };
}

/** Replicas of a service with a hub hand polls and event streams to the replica that owns the connection. */
function replicaPorts({ routes }: Service): readonly number[] {
  return routes.some(({ hub }) => hub === true) ? [portOf('https')] : [];
}

function portOf(listener: ListenerName): number {
  return LISTENER_PORTS[listener];
}

/** `files/services.json` of the chart. */
export function renderChartServices(services = listServices()): string {
  return `${JSON.stringify(chartServices(services), null, 2)}\n`;
}

const idValues = /(key: chancery\.dev\/client-id\n( +)operator: In\n +values:)\s*\[[^\]]*\]/;

/**
 * The ClusterSPIFFEIDs of `spire/` with the client ids of the catalogue.
 * @throws Error when the text has no list of client ids
 */
export function withClientIds(text: string, services = listServices()): string {
  if (!idValues.test(text)) throw new Error('the ClusterSPIFFEIDs have no list of client ids');
  // In the form of the formatter, which breaks a list that is longer than a line.
  const items = chartServices(services).clientIds.map((id) => `$2    ${id},\n`);
  return text.replace(idValues, `$1\n$2  [\n${items.join('')}$2  ]`);
}

const trustDomain = 'acme.chancery.local';
const nodes = `spiffe://${trustDomain}/nodes`;
/** Members of the ValidatorSet of the samples. */
const sampleMembers = ['main-0', 'main-1', 'main-2', 'main-3'];

/** The registration entries of `spire/entries.json`, for a SPIRE without its controller manager. */
export function renderEntries(services = listServices()): string {
  const agents = {
    parent_id: `spiffe://${trustDomain}/spire/server`,
    spiffe_id: nodes,
    selectors: selectors('k8s_psat', ['cluster:main', 'agent_ns:spire-system', 'agent_sa:spire-agent']),
  };
  const single = chartServices(services).clientIds.map((clientId) => workload(clientId, [`sa:${clientId}`]));
  const members = sampleMembers.map((member) =>
    workload(`validator-${member}`, ['sa:validator-main', `pod-name:${member}`]),
  );
  return `${JSON.stringify({ entries: [agents, ...single, ...members] }, null, 2)}\n`;
}

function workload(clientId: string, conditions: readonly string[]) {
  return {
    parent_id: nodes,
    spiffe_id: `spiffe://${trustDomain}/service/${clientId}`,
    x509_svid_ttl: 3600,
    selectors: selectors('k8s', ['ns:chancery', ...conditions]),
  };
}

function selectors(type: string, values: readonly string[]) {
  return values.map((value) => ({ type, value }));
}
