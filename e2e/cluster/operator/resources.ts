import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import { type ApiServer, kubectl } from '../kubectl.ts';

/** Kinds by the plural of their paths. */
export const plurals = { Tenant: 'tenants', Register: 'registers', ValidatorSet: 'validatorsets' } as const;
export type Kind = keyof typeof plurals;

const objectSchema = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    generation: z.number(),
    resourceVersion: z.string(),
  }),
  status: z
    .object({
      observedGeneration: z.number().optional(),
      conditions: z
        .array(z.object({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() }))
        .default([]),
    })
    .prefault({}),
});

/** The members of a custom resource that these tests use. */
export type StoredResource = z.output<typeof objectSchema>;

/** Custom resources of one namespace, all with the label of the run. */
export interface Resources {
  create(kind: Kind, name: string, spec: object): Promise<void>;
  /** Merges into the spec. */
  edit(kind: Kind, name: string, spec: object): Promise<void>;
  get(kind: Kind, name: string): Promise<StoredResource>;
  /** Objects of the run. */
  list(kind: Kind): Promise<readonly StoredResource[]>;
  /** Waits until the operator has reconciled the last generation, optionally with `Ready` True. */
  settled(
    kind: Kind,
    name: string,
    options?: { readonly isReady?: boolean; readonly withinMs?: number },
  ): Promise<void>;
  /** Text of the conditions. */
  says(kind: Kind, name: string): Promise<string>;
}

/** Custom resources through the API server, without a process per call. */
export function resourcesOf(api: ApiServer, namespace: string, run: string): Resources {
  const path = (kind: Kind, name = '') =>
    `/apis/chancery.dev/v1alpha1/namespaces/${namespace}/${plurals[kind]}${name === '' ? '' : `/${name}`}`;
  const ask = async (...[method, where, body, type]: Parameters<ApiServer['request']>) => {
    const answer = await api.request(method, where, body, type);
    if (answer.status >= 300) throw new Error(`${method} ${where}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const get = async (kind: Kind, name: string) => objectSchema.parse(await ask('GET', path(kind, name)));
  return {
    get,
    create: async (kind, name, spec) => {
      const metadata = { name, namespace, labels: { 'example.org/run': run } };
      await ask('POST', path(kind), { apiVersion: 'chancery.dev/v1alpha1', kind, metadata, spec });
    },
    edit: async (kind, name, spec) => {
      await ask('PATCH', path(kind, name), { spec }, 'application/merge-patch+json');
    },
    list: async (kind) => {
      const selector = encodeURIComponent(`example.org/run=${run}`);
      const body = await ask('GET', `${path(kind)}?labelSelector=${selector}`);
      return z.object({ items: z.array(objectSchema) }).parse(body).items;
    },
    settled: async (kind, name, { isReady = true, withinMs = 60_000 } = {}) => {
      const look = async () => {
        const { metadata, status } = await get(kind, name);
        const ready = status.conditions.find(({ type }) => type === 'Ready');
        return status.observedGeneration === metadata.generation && (!isReady || ready?.status === 'True');
      };
      await waitFor(look, { what: `${kind} ${name}`, deadlineMs: withinMs, everyMs: 50 });
    },
    says: async (kind, name) =>
      (await get(kind, name)).status.conditions.map(({ message }) => message).join('\n'),
  };
}

/** Deletes the objects of a run, registers first. */
export async function removeRun(namespace: string, run: string): Promise<void> {
  const label = ['-n', namespace, '-l', `example.org/run=${run}`, '--timeout=60s'];
  await kubectl('delete', 'registers', ...label);
  await kubectl('delete', 'tenants,validatorsets', ...label);
}
