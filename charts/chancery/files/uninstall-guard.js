import { readFileSync } from 'node:fs';

const {
  KUBERNETES_SERVICE_HOST: host,
  KUBERNETES_SERVICE_PORT: port,
  NAMESPACE,
  NAMESPACES,
  RELEASE,
  ORPHAN,
} = process.env;
const credentials = '/var/run/secrets/kubernetes.io/serviceaccount';
const authorization = `Bearer ${readFileSync(`${credentials}/token`, 'utf8').trim()}`;

const kinds = ['registers', 'validatorsets', 'tenants'];

/** All objects of one kind, page by page; none where the kind itself is gone. */
async function fetchItems(path, accept = 'application/json') {
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const items = [];
  let next = '';
  do {
    const url = new URL(path, server);
    url.searchParams.set('limit', '500');
    if (next !== '') url.searchParams.set('continue', next);
    const signal = AbortSignal.timeout(20_000);
    const answer = await fetch(url, { headers: { authorization, accept }, signal });
    if (answer.status === 404) return [];
    if (!answer.ok) throw new Error(`the API server answers ${answer.status} for ${path}`);
    const list = await answer.json();
    // an empty list of metadata alone has null
    items.push(...(list.items ?? []));
    next = list.metadata.continue ?? '';
  } while (next !== '');
  return items;
}

/** What is there of the three kinds, in one namespace or in all: namespaces and names. */
async function look(namespace) {
  const place = namespace === undefined ? '' : `namespaces/${namespace}/`;
  const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
  const list = async (kind) => {
    const items = await fetchItems(`/apis/chancery.dev/v1alpha1/${place}${kind}`, accept);
    return items.map(({ metadata }) => ({ namespace: metadata.namespace, name: `${kind}/${metadata.name}` }));
  };
  return (await Promise.all(kinds.map(list))).flat();
}

/** Namespace of the operator that an installation names, from the ConfigMaps there; undefined where none can be read. */
function operatorOf(namespace, configMaps) {
  const [text, ...more] = configMaps.flatMap(({ data }) => data?.['installation.json'] ?? []);
  if (text === undefined || more.length > 0) return undefined;
  try {
    return JSON.parse(text).operatorNamespace ?? namespace;
  } catch {
    return undefined;
  }
}

/** What this operator looks after, with scope All: everything but what is in installations that name another one. */
async function findServed() {
  const path = '/api/v1/configmaps?labelSelector=chancery.dev%2Finstallation';
  const [all, configMaps] = await Promise.all([look(), fetchItems(path)]);
  const described = Map.groupBy(configMaps, ({ metadata }) => metadata.namespace);
  const isOurs = (namespace) => {
    const operator = operatorOf(namespace, described.get(namespace) ?? []);
    return namespace === NAMESPACE || operator === undefined || operator === NAMESPACE;
  };
  return all.filter(({ namespace }) => isOurs(namespace));
}

const found =
  NAMESPACES === '' ? await findServed() : (await Promise.all(NAMESPACES.split(',').map(look))).flat();
if (found.length > 0 && ORPHAN !== 'true') {
  const names = found.map(({ namespace, name }) => (namespace === NAMESPACE ? name : `${namespace}/${name}`));
  const holding = new Set(found.map(({ namespace }) => namespace));
  console.log(
    [
      `The operator of ${RELEASE} still manages ${names.length} resources: ${names.slice(0, 5).join(', ')}${names.length > 5 ? ', ...' : ''}.`,
      'Without the operator their resources outside Kubernetes are not cleaned up, and they cannot be deleted.',
      ...[...holding].map(
        (namespace) =>
          `Delete them first: kubectl delete -n ${namespace} registers,validatorsets,tenants --all`,
      ),
      `Or leave them behind: helm upgrade ${RELEASE} CHART -n ${NAMESPACE} --reuse-values --set uninstall.orphan=true, then uninstall again.`,
    ].join('\n'),
  );
  process.exit(1);
}
