import type { ApiServer } from '../../cluster/kubectl.ts';

interface ContainerStats {
  readonly cpu: { readonly time: string; readonly usageCoreNanoSeconds: number };
  readonly memory: { readonly workingSetBytes: number };
}

/** The part of a kubelet's summary about a pod that is used here. */
export interface PodStats {
  readonly podRef: { readonly name: string; readonly namespace: string };
  readonly containers: readonly ContainerStats[];
}

/** A pod and its node. */
export interface PodLocation {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
}

/** Resource usage of a pod at a time, as its kubelet measured it. */
export interface Usage {
  readonly atMs: number;
  /** Since the start of the pod. */
  readonly cpuMs: number;
  /** Working set, which counts against the limit: memory and files in use. */
  readonly memoryMiB: number;
}

export function readUsage(pods: readonly PodStats[], { namespace, name }: PodLocation): Usage {
  const pod = pods.find(({ podRef }) => podRef.name === name && podRef.namespace === namespace);
  const [container] = pod?.containers ?? [];
  if (container === undefined) throw new Error(`the kubelet says nothing of ${namespace}/${name}`);
  const { cpu, memory } = container;
  return {
    atMs: Date.parse(cpu.time),
    cpuMs: cpu.usageCoreNanoSeconds / 1e6,
    memoryMiB: memory.workingSetBytes / 2 ** 20,
  };
}

/** Reads the summary of the pod's kubelet through the API server. */
export async function usageOf(api: ApiServer, place: PodLocation): Promise<Usage> {
  const path = `/api/v1/nodes/${place.node}/proxy/stats/summary`;
  const { status, body } = await api.request('GET', path);
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
  return readUsage(body['pods'] as readonly PodStats[], place);
}

/** Thousandths of a core between two measurements. */
export function millicores(before: Usage, after: Usage): number {
  return ((after.cpuMs - before.cpuMs) / (after.atMs - before.atMs)) * 1000;
}
