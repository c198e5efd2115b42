import { kubectl } from '../../cluster/kubectl.ts';
import { samplesOf } from '../metrics.ts';

/** A kind or a subresource of it, named as in the rules of a role. */
export interface Writable {
  readonly group: string;
  readonly resource: string;
  /** Empty for the objects themselves. */
  readonly subresource: string;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface Listed {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly reportingController?: string;
}

const verbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];
/** The same, as the API server counts them. */
const methods = ['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE', 'DELETECOLLECTION'];

/** The kinds that a role may change; the lease has a role of its own. */
export function writableKinds(rules: readonly Rule[]): readonly Writable[] {
  return rules
    .filter((rule) => rule.verbs.some((verb) => verbs.includes(verb)))
    .flatMap(({ apiGroups, resources }) =>
      apiGroups.flatMap((group) =>
        resources.map((each) => {
          const [resource = '', subresource = ''] = each.split('/');
          return { group, resource, subresource };
        }),
      ),
    );
}

/** The kinds that the operator of a namespace may change and that the cluster has. */
export async function operatorKinds(namespace: string): Promise<readonly Writable[]> {
  const role = JSON.parse(await kubectl('get', 'role', 'chancery-operator', '-n', namespace, '-o', 'json'));
  const served = new Set((await kubectl('api-resources', '-o', 'name')).split('\n'));
  return writableKinds((role as { rules: Rule[] }).rules).filter((each) => served.has(nameOf(each)));
}

const nameOf = ({ group, resource }: Writable): string => (group === '' ? resource : `${resource}.${group}`);

const idOf = ({ group, resource, subresource }: Writable): string => `${group}/${resource}/${subresource}`;

/** Writes of these kinds by any client, from the API server's metrics; writes without a change count too. */
export function writeCalls(text: string, kinds: readonly Writable[]): number {
  const ids = new Set(kinds.map(idOf));
  return samplesOf(text, 'apiserver_request_total')
    .filter(({ labels }) => methods.includes(labels['verb'] ?? ''))
    .filter(({ labels: { group = '', resource = '', subresource = '' } }) =>
      ids.has(idOf({ group, resource, subresource })),
    )
    .reduce((sum, { value }) => sum + value, 0);
}

/** Versions of all objects of these kinds; of events, only those of the operator. */
export async function readVersions(
  namespace: string,
  kinds: readonly Writable[],
): Promise<ReadonlyMap<string, string>> {
  const distinct = [...new Set(kinds.map(nameOf))].join(',');
  const { items } = JSON.parse(await kubectl('get', distinct, '-n', namespace, '-o', 'json')) as {
    items: readonly Listed[];
  };
  return versionsOf(items);
}

export function versionsOf(items: readonly Listed[]): ReadonlyMap<string, string> {
  const kept = items.filter(
    ({ kind, metadata, reportingController }) =>
      metadata.labels?.['app.kubernetes.io/name'] !== 'operator' &&
      (kind !== 'Event' || reportingController === 'chancery.dev/operator'),
  );
  return new Map(
    kept.map(({ kind, metadata: { name, uid, resourceVersion } }) => [
      `${kind} ${name} ${uid}`,
      resourceVersion,
    ]),
  );
}

/** Objects that were created, changed or deleted between two readings. */
export function changedObjects(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all].filter((each) => before.get(each) !== after.get(each));
}
