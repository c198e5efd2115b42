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
const namespaces = NAMESPACES.split(',');

/** Names of what is there of one kind; none where the kind itself is gone. */
async function list(namespace, kind) {
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const url = `${server}/apis/chancery.dev/v1alpha1/namespaces/${namespace}/${kind}?limit=100`;
  const answer = await fetch(url, { headers: { authorization }, signal: AbortSignal.timeout(20_000) });
  if (answer.status === 404) return [];
  if (!answer.ok) throw new Error(`the API server answers ${answer.status} for ${kind}`);
  const { items } = await answer.json();
  const place = namespace === NAMESPACE ? '' : `${namespace}/`;
  return items.map(({ metadata }) => `${place}${kind}/${metadata.name}`);
}

const places = namespaces.flatMap((namespace) => kinds.map((kind) => list(namespace, kind)));
const found = (await Promise.all(places)).flat();
if (found.length > 0 && ORPHAN !== 'true') {
  console.log(
    [
      `The operator of ${RELEASE} still looks after ${found.length} resources: ${found.slice(0, 5).join(', ')}${found.length > 5 ? ', ...' : ''}.`,
      'Without it nobody ends what they made outside Kubernetes, and they cannot be deleted any more.',
      ...namespaces.map(
        (each) => `Delete them first: kubectl delete -n ${each} registers,validatorsets,tenants --all`,
      ),
      `Or leave them behind: helm upgrade ${RELEASE} CHART -n ${NAMESPACE} --reuse-values --set uninstall.orphan=true, then uninstall again.`,
    ].join('\n'),
  );
  process.exit(1);
}
