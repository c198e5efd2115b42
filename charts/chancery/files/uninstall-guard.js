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

/** Objects of one kind; none where the kind itself is gone. */
async function fetchItems(path) {
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const signal = AbortSignal.timeout(20_000);
  const answer = await fetch(`${server}${path}`, { headers: { authorization }, signal });
  if (answer.status === 404) return [];
  if (!answer.ok) throw new Error(`the API server answers ${answer.status} for ${path}`);
  return (await answer.json()).items;
}

/** What is there in a namespace. */
async function look(namespace) {
  const place = namespace === NAMESPACE ? '' : `${namespace}/`;
  const list = async (kind) => {
    const path = `/apis/chancery.dev/v1alpha1/namespaces/${namespace}/${kind}?limit=100`;
    return (await fetchItems(path)).map(({ metadata }) => `${place}${kind}/${metadata.name}`);
  };
  return { namespace, names: (await Promise.all(kinds.map(list))).flat() };
}

/** Namespace of the operator that looks after the installation that a ConfigMap describes. */
function operatorOf({ data }) {
  try {
    return JSON.parse(data['installation.json']).operatorNamespace;
  } catch {
    // it describes none
    return undefined;
  }
}

/** The own namespace, and those of the installations that name this operator. */
async function findServed() {
  const path = '/api/v1/configmaps?labelSelector=chancery.dev%2Finstallation';
  const served = (await fetchItems(path)).filter((each) => operatorOf(each) === NAMESPACE);
  return [...new Set([NAMESPACE, ...served.map(({ metadata }) => metadata.namespace)])];
}

const namespaces = NAMESPACES === '' ? await findServed() : NAMESPACES.split(',');
const holding = (await Promise.all(namespaces.map(look))).filter(({ names }) => names.length > 0);
const found = holding.flatMap(({ names }) => names);
if (found.length > 0 && ORPHAN !== 'true') {
  console.log(
    [
      `The operator of ${RELEASE} still looks after ${found.length} resources: ${found.slice(0, 5).join(', ')}${found.length > 5 ? ', ...' : ''}.`,
      'Without it nobody ends what they made outside Kubernetes, and they cannot be deleted any more.',
      ...holding.map(
        ({ namespace }) =>
          `Delete them first: kubectl delete -n ${namespace} registers,validatorsets,tenants --all`,
      ),
      `Or leave them behind: helm upgrade ${RELEASE} CHART -n ${NAMESPACE} --reuse-values --set uninstall.orphan=true, then uninstall again.`,
    ].join('\n'),
  );
  process.exit(1);
}
