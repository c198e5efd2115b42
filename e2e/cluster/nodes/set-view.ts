import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import { namespace } from '../installed.ts';
import { kubectl, openApiServer } from '../kubectl.ts';

const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string(),
  message: z.string(),
});

const set = z.object({
  metadata: z.object({ generation: z.number() }),
  status: z.object({
    observedGeneration: z.number(),
    faultTolerance: z.number(),
    nodeFaultTolerance: z.number(),
    conditions: z.array(condition),
    members: z.array(
      z.object({
        name: z.string(),
        ready: z.boolean(),
        registers: z
          .array(z.object({ registerId: z.string(), height: z.number(), behind: z.number() }))
          .optional(),
      }),
    ),
  }),
});

const pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), uid: z.string(), deletionTimestamp: z.string().optional() }),
      spec: z.object({ nodeName: z.string().optional() }),
      status: z.object({ conditions: z.array(condition.pick({ type: true, status: true })).optional() }),
    }),
  ),
});

/** A ValidatorSet as the API server has it. */
export type SetObject = z.output<typeof set>;

/** A pod of it. */
export interface MemberPod {
  readonly name: string;
  readonly uid: string;
  readonly node: string | undefined;
  /** Its node says that it is ready, and nobody has told it to go. */
  readonly isLive: boolean;
}

/** How few members were live at any moment, and when the quorum was not. */
export interface LiveCounts {
  readonly looks: number;
  readonly least: number;
  /** What the condition QuorumHealthy said whenever it did not hold. */
  readonly unhealthy: readonly string[];
}

/** The set `main` of the shared installation, watched through the API server. */
export interface SetView {
  read(): Promise<SetObject>;
  pods(): Promise<readonly MemberPod[]>;
  /** Names of pods with their uids. */
  uids(): Promise<Readonly<Record<string, string>>>;
  /** Node of a pod. */
  nodeOf(pod: string): Promise<string>;
  condition(type: string): Promise<z.output<typeof condition>>;
  /** Waits until a condition has a status; gives what it says then. */
  becomes(type: string, status: string, deadlineMs: number): Promise<z.output<typeof condition>>;
  /** Waits until the last change was seen and the set is ready. */
  settles(deadlineMs: number): Promise<void>;
  /** Changes the spec by a merge patch. */
  patch(spec: object): Promise<void>;
  /** Looks again and again until it is told to stop. */
  countLive(): { stop(): Promise<LiveCounts> };
  close(): Promise<void>;
}

const setPath = `/apis/chancery.dev/v1alpha1/namespaces/${namespace}/validatorsets/main`;
const podsPath = `/api/v1/namespaces/${namespace}/pods?labelSelector=chancery.dev/validator-set=main`;

/** Watches the set; to be closed. */
export async function openSetView(): Promise<SetView> {
  const api = await openApiServer();
  const get = async <T>(path: string, shape: z.ZodType<T>) =>
    shape.parse((await api.request('GET', path)).body);
  const read = () => get(setPath, set);
  const members = async () => (await get(podsPath, pods)).items.map(memberPod);
  const find = async (type: string) => {
    const found = (await read()).status.conditions.find((each) => each.type === type);
    if (found === undefined) throw new Error(`the set has no condition ${type}`);
    return found;
  };
  return {
    read,
    pods: members,
    uids: async () => Object.fromEntries((await members()).map(({ name, uid }) => [name, uid])),
    nodeOf: async (pod) => {
      const node = (await members()).find(({ name }) => name === pod)?.node;
      if (node === undefined) throw new Error(`${pod} is on no node`);
      return node;
    },
    condition: find,
    becomes: (type, status, deadlineMs) =>
      waitFor(
        async () => {
          const now = await find(type);
          return now.status === status && now;
        },
        { what: `${type}=${status}`, deadlineMs, everyMs: 100 },
      ),
    settles: async (deadlineMs) => {
      const isSettled = async () => isReady(await read());
      await waitFor(isSettled, { what: 'the set to be well', deadlineMs, everyMs: 300 });
    },
    patch: async (spec) => {
      const body = JSON.stringify({ spec });
      await kubectl('-n', namespace, 'patch', 'vset/main', '--type=merge', '-p', body);
    },
    countLive: () => countLive(members, () => find('QuorumHealthy')),
    close: () => api.stop(),
  };
}

function memberPod({ metadata, spec, status }: z.output<typeof pods>['items'][number]): MemberPod {
  const isReadyNow = status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True');
  const { name, uid, deletionTimestamp } = metadata;
  return { name, uid, node: spec.nodeName, isLive: isReadyNow === true && deletionTimestamp === undefined };
}

function isReady({ metadata, status }: SetObject): boolean {
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  return status.observedGeneration === metadata.generation && ready?.status === 'True';
}

function countLive(
  members: SetView['pods'],
  quorum: () => Promise<z.output<typeof condition>>,
): { stop(): Promise<LiveCounts> } {
  let isStopped = false;
  const look = async (): Promise<LiveCounts> => {
    const unhealthy = new Set<string>();
    let least = Number.POSITIVE_INFINITY;
    let looks = 0;
    do {
      const [found, { status, message }] = await Promise.all([members(), quorum()]);
      least = Math.min(least, found.filter(({ isLive }) => isLive).length);
      if (status !== 'True') unhealthy.add(`${status}: ${message}`);
      looks += 1;
      await new Promise((resolve) => setTimeout(resolve, 150));
    } while (!isStopped);
    return { looks, least, unhealthy: [...unhealthy] };
  };
  const counts = look();
  // whoever stops it is told
  counts.catch(() => undefined);
  return {
    stop: () => {
      isStopped = true;
      return counts;
    },
  };
}
