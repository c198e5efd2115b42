import { waitFor } from '#kit/testing/wait.ts';
import { namespace } from './installed.ts';
import { type ApiServer, kubectl } from './kubectl.ts';

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly image: string; readonly resources: object }[];
  };
  readonly status: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime: string;
    }[];
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
  };
}

export interface Claim {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: {
    readonly resources: { readonly requests: { readonly storage: string } };
  };
  readonly status: { readonly capacity?: { readonly storage: string } };
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

export interface SetObject {
  readonly metadata: { readonly generation: number; readonly resourceVersion: string };
  readonly spec: { readonly replicas: number; readonly version?: string };
  readonly status: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
    readonly faultTolerance?: number;
    readonly nodeFaultTolerance?: number;
    readonly members?: readonly Member[];
  };
}

/** Status of a member of a set. */
export interface Member {
  readonly name: string;
  readonly registers?: readonly {
    readonly registerId: string;
    readonly height: number;
    readonly behind: number;
  }[];
}

/** A ValidatorSet of the shared installation, read without a process per call. */
export interface RunningSet {
  patch(spec: object): Promise<string>;
  read(): Promise<SetObject>;
  condition(type: string): Promise<Condition | undefined>;
  /** Waits until a condition has a status; returns the condition. */
  becomes(type: string, status: string, deadlineMs: number): Promise<Condition>;
  pods(): Promise<readonly Pod[]>;
  /** Uids of its pods by name. */
  uids(): Promise<ReadonlyMap<string, string>>;
  /** Name of the node that a pod is on. */
  nodeOf(pod: string): Promise<string>;
  claims(): Promise<readonly Claim[]>;
  /** Waits until it is Ready in its last generation; returns the milliseconds. */
  settled(deadlineMs: number): Promise<number>;
}

/** Whether a pod is ready and not terminating. */
export function isLive({ metadata, status }: Pod): boolean {
  const isReady = status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True');
  return isReady === true && metadata.deletionTimestamp === undefined;
}

/** Text of the state of a pod. */
function stateOf({ metadata, status }: Pod): string {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const going = metadata.deletionTimestamp === undefined ? '' : ', goes';
  return `${metadata.name} ready ${ready?.status} since ${ready?.lastTransitionTime}${going}`;
}

/** Names of pods whose uid has changed. */
export function changed(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  return [...before].filter(([name, uid]) => after.get(name) !== uid).map(([name]) => name);
}

/** Waits until a condition holds; returns the milliseconds. */
export async function within(
  what: string,
  deadlineMs: number,
  check: () => Promise<unknown>,
): Promise<number> {
  const startedAt = performance.now();
  await waitFor(check, { what, deadlineMs, everyMs: 150 });
  return performance.now() - startedAt;
}

function conditionIn({ status }: SetObject, type: string): Condition | undefined {
  return status.conditions?.find((each) => each.type === type);
}

/** The set of that name. */
export function runningSet(api: ApiServer, name: string): RunningSet {
  const get = async <T>(path: string): Promise<T> => {
    const { status, body } = await api.request('GET', path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    return body as T;
  };
  const selector = encodeURIComponent(`chancery.dev/validator-set=${name}`);
  const list = async <T>(kind: string): Promise<readonly T[]> =>
    (
      await get<{ readonly items: readonly T[] }>(
        `/api/v1/namespaces/${namespace}/${kind}?labelSelector=${selector}`,
      )
    ).items;
  const pods = () => list<Pod>('pods');
  const read = () =>
    get<SetObject>(`/apis/chancery.dev/v1alpha1/namespaces/${namespace}/validatorsets/${name}`);
  return {
    patch: (spec) =>
      kubectl('-n', namespace, 'patch', `vset/${name}`, '--type=merge', '-p', JSON.stringify({ spec })),
    read,
    pods,
    condition: async (type) => conditionIn(await read(), type),
    becomes: (type, status, deadlineMs) =>
      waitFor(
        async () => {
          const now = conditionIn(await read(), type);
          return now?.status === status && now;
        },
        { what: `${type}=${status}`, deadlineMs, everyMs: 100 },
      ),
    uids: async () => new Map((await pods()).map(({ metadata }) => [metadata.name, metadata.uid])),
    nodeOf: async (pod) => {
      const node = (await pods()).find(({ metadata }) => metadata.name === pod)?.spec.nodeName;
      if (node === undefined) throw new Error(`${pod} is on no node`);
      return node;
    },
    claims: () => list<Claim>('persistentvolumeclaims'),
    settled: (deadlineMs) =>
      within(`${name} to be well`, deadlineMs, async () => {
        const object = await read();
        const isSeen = object.status.observedGeneration === object.metadata.generation;
        return isSeen && conditionIn(object, 'Ready')?.status === 'True';
      }),
  };
}

/** Result of the observation of a set. */
export interface Observation {
  /**
   * Largest number of members in replacement at one time: the pod was missing, terminating or not live yet. A failing probe
   * for lack of CPU does not count.
   */
  mostAway: number;
  /** State of all pods at that time. */
  away: readonly string[];
  /** Values of QuorumHealthy other than True. */
  readonly doubts: Set<string>;
  /** Uids of each pod. */
  readonly uids: Map<string, Set<string>>;
}

/** Observes quorum and pods of a set until a condition holds. */
export async function follow(
  set: RunningSet,
  what: string,
  { deadlineMs, until }: { readonly deadlineMs: number; readonly until: () => Promise<unknown> },
): Promise<Observation> {
  const course: Observation = { mostAway: 0, away: [], doubts: new Set(), uids: new Map() };
  const { replicas } = (await set.read()).spec;
  const wereLive = new Set<string>();
  await within(what, deadlineMs, async () => {
    const [pods, quorum] = await Promise.all([set.pods(), set.condition('QuorumHealthy')]);
    for (const pod of pods) if (isLive(pod)) wereLive.add(pod.metadata.uid);
    const isThere = ({ metadata }: Pod) =>
      metadata.deletionTimestamp === undefined && wereLive.has(metadata.uid);
    const away = replicas - pods.filter(isThere).length;
    if (away > course.mostAway) Object.assign(course, { mostAway: away, away: pods.map(stateOf) });
    if (quorum?.status !== 'True') course.doubts.add(`${quorum?.status} ${quorum?.message}`);
    for (const { metadata } of pods) {
      const known = course.uids.get(metadata.name) ?? new Set();
      course.uids.set(metadata.name, known.add(metadata.uid));
    }
    return until();
  });
  return course;
}

/** Observes a set like `follow` during an action, with a deadline in milliseconds. */
export async function during(
  set: RunningSet,
  deadlineMs: number,
  act: () => Promise<void>,
): Promise<Observation> {
  let isDone = false;
  const course = follow(set, 'what is done meanwhile', { deadlineMs, until: async () => isDone });
  // the caller gets the error below
  course.catch(() => undefined);
  try {
    await act();
  } finally {
    isDone = true;
  }
  return course;
}

/** Names of the pods, oldest first. */
export function byAge(pods: readonly Pod[]): readonly string[] {
  const made = ({ metadata }: Pod) => Date.parse(metadata.creationTimestamp);
  return pods.toSorted((left, right) => made(left) - made(right)).map(({ metadata }) => metadata.name);
}
