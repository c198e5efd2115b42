import { install, installKinds, type Release, removeNamespace } from '../../cluster/chart.ts';
import { setup } from '../../cluster/images.setup.ts';
import { type ApiServer, kubectl, must, openApiServer } from '../../cluster/kubectl.ts';
import { inParallel } from '../../harness/wait.ts';
import { follow, type ObjectFollower } from './follow.ts';
import { type Meter, openMeter } from './meter.ts';
import type { NewResource } from './population.ts';
import type { PodLocation } from './usage.ts';
import { operatorKinds, type Writable } from './writes.ts';

/** An installation of its own, with its watches. */
export interface Stage {
  readonly namespace: string;
  readonly api: ApiServer;
  readonly meter: Meter;
  /** The kinds that the operator may change. */
  readonly kinds: readonly Writable[];
  readonly tenants: ObjectFollower;
  readonly registers: ObjectFollower;
  readonly validatorSets: ObjectFollower;
  /** The metrics of the API server. */
  readonly metrics: () => Promise<string>;
  /** The operator's pod. */
  readonly operator: () => Promise<PodLocation>;
  /** Creates objects, 16 at a time. */
  readonly make: (objects: readonly NewResource[]) => Promise<void>;
  /** Removes everything, the resources first. */
  readonly remove: () => Promise<void>;
}

export const release: Release = {
  name: 'bench',
  namespace: process.env['NAMESPACE'] ?? 'chancery-bench',
  // The calls of a replica that waits for the lease would count as those of the leader.
  set: ['operator.replicas=1', 'ingress.enabled=false'],
};

/** Selects the operator's pod. */
export const operatorLabels = 'app.kubernetes.io/name=operator';
const inFlight = 16;
const plurals = { Tenant: 'tenants', Register: 'registers', ValidatorSet: 'validatorsets' } as const;

/** Imports the images by LOAD, where it is set, and installs the chart. */
export async function openStage(): Promise<Stage> {
  const { namespace } = release;
  await setup();
  await installKinds();
  await install(release);
  const api = await openApiServer();
  const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
  const pathOf = (kind: NewResource['kind']) =>
    `/apis/chancery.dev/v1alpha1/namespaces/${namespace}/${plurals[kind]}`;
  const [tenants, registers, validatorSets] = await Promise.all([
    follow(api, pathOf('Tenant')),
    follow(api, pathOf('Register')),
    follow(api, pathOf('ValidatorSet')),
  ]);
  const meter = await openMeter(namespace, metrics);
  return {
    namespace,
    api,
    meter,
    kinds: await operatorKinds(namespace),
    tenants,
    registers,
    validatorSets,
    metrics,
    operator: () => findOperator(namespace),
    make: async (objects) => {
      await inParallel(objects, inFlight, async (object) => {
        const { status, body } = await api.request('POST', pathOf(object.kind), object);
        if (status !== 201) throw new Error(`${object.metadata.name}: ${JSON.stringify(body)}`);
      });
    },
    remove: async () => {
      await Promise.all([tenants, registers, validatorSets].map((each) => each.stop()));
      await api.stop();
      await meter.remove();
      const kinds = ['delete', 'registers,validatorsets,tenants', '--all', '-n', namespace];
      await must('kubectl', [...kinds, '--timeout=240s'], { timeoutMs: 250_000 });
      await removeNamespace(namespace);
    },
  };
}

async function findOperator(namespace: string): Promise<PodLocation> {
  const args = ['get', 'pods', '-n', namespace, '-l', operatorLabels, '-o', 'json'];
  const { items } = JSON.parse(await kubectl(...args)) as {
    items: readonly { metadata: { name: string }; spec: { nodeName: string } }[];
  };
  const [pod, ...others] = items;
  if (pod === undefined || others.length > 0) throw new Error(`${items.length} pods of the operator`);
  return { namespace, name: pod.metadata.name, node: pod.spec.nodeName };
}
