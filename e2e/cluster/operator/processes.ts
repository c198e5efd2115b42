import { readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import type { ApiServer } from '../kubectl.ts';

/** An operator process: its pod, and its process id on this host. */
export interface OperatorProcess {
  readonly pod: string;
  /** Identity in the lease; a restarted container is another process. */
  readonly identity: string;
  readonly pid: number;
}

const leaseSchema = z.object({ spec: z.object({ holderIdentity: z.string().default('') }) });
const podsSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }),
      status: z.object({
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        containerStatuses: z.array(z.object({ restartCount: z.number() })).default([]),
      }),
    }),
  ),
});

/** Holder of the lease, also if it is dead; empty without a holder. */
export async function holderOf(api: ApiServer, namespace: string): Promise<string> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/chancery-operator`;
  const { spec } = leaseSchema.parse((await api.request('GET', path)).body);
  return spec.holderIdentity;
}

/** Pods of the operator that are not terminating, with their restarts. */
export async function operatorPods(
  api: ApiServer,
  namespace: string,
): Promise<ReadonlyMap<string, { readonly isReady: boolean; readonly restarts: number }>> {
  const selector = encodeURIComponent('app.kubernetes.io/name=operator');
  const { body } = await api.request('GET', `/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`);
  const { items } = podsSchema.parse(body);
  return new Map(
    items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata, status }) => [
        metadata.name,
        {
          isReady: status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
          restarts: status.containerStatuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
        },
      ]),
  );
}

/** Waits until two operator pods are ready and one of them leads; returns the leading process. */
export function leaderWithStandby(api: ApiServer, namespace: string): Promise<OperatorProcess> {
  const look = async () => {
    const pods = [...(await operatorPods(api, namespace))].filter(([, { isReady }]) => isReady);
    const identity = await holderOf(api, namespace);
    const pod = identity.split('_')[0] ?? '';
    if (pods.length !== 2 || !pods.some(([name]) => name === pod)) return undefined;
    const pid = findProcess(namespace, pod);
    return pid === undefined ? undefined : { pod, identity, pid };
  };
  return waitFor(look, { what: 'a leader and another ready one', deadlineMs: 60_000, everyMs: 100 });
}

/** The process of the ready standby pod. */
export async function standbyOf(
  api: ApiServer,
  namespace: string,
  leader: OperatorProcess,
): Promise<Pick<OperatorProcess, 'pod' | 'pid'>> {
  const pods = await operatorPods(api, namespace);
  const pod = [...pods.keys()].find((each) => each !== leader.pod) ?? '';
  const pid = findProcess(namespace, pod);
  if (pid === undefined) throw new Error(`no process of ${pod} stands by`);
  return { pod, pid };
}

/** Process id of a pod's process; pods of the test cluster run on this host. */
function findProcess(namespace: string, pod: string): number | undefined {
  const expected = [`POD_NAME=${pod}`, `POD_NAMESPACE=${namespace}`];
  const found = readdirSync('/proc').find((name) => {
    if (!/^\d+$/.test(name)) return false;
    const settings = readSettings(name);
    return expected.every((each) => settings.includes(each));
  });
  return found === undefined ? undefined : Number(found);
}

/** Environment of a process; empty for an ended or a kernel process. */
function readSettings(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Whether a process has ended; a zombie counts as ended. */
export function hasEnded({ pid }: OperatorProcess): boolean {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}
