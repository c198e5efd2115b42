import { randomUUID } from 'node:crypto';
import type { Tenant } from '../../../api/tenant.ts';
import type { Api } from '../../../kube/api.ts';
import { volumeClaims } from '../../../kube/kinds.ts';
import { isRecord } from '../../../kube/resource.ts';
import type { Dependencies } from '../../reconciler/dependencies.ts';
import type { KindHandler } from '../../reconciler/kind.ts';

/** A deliberate error in the operator that the invariants must detect. */
export interface Mutation {
  /** Calls are not fenced. */
  readonly isUnfenced?: boolean;
  /** Members seem to answer even if they do not. */
  readonly trustsEveryMember?: boolean;
  readonly api?: (api: Api) => Api;
  readonly tenants?: (kind: KindHandler<Tenant>, dependencies: Dependencies) => KindHandler<Tenant>;
}

export const noMutation: Mutation = {};

/** Sets observedGeneration of every second status to 0. */
function outdated(body: unknown, isOdd: boolean): unknown {
  const status = isRecord(body) ? body['status'] : undefined;
  if (!isRecord(body) || !isRecord(status) || !isOdd) return body;
  return { ...body, status: { ...status, observedGeneration: 0 } };
}

/** Mutations by the behaviour that they cause. */
export const mutations = {
  'writes without the lease': { isUnfenced: true },
  'trusts every member': { trustsEveryMember: true },
  'removes finalizers before the cleanup': {
    tenants: (kind) => ({ ...kind, finalize: async () => ({ done: true }) }),
  },
  'writes in every reconcile': {
    tenants: (kind, { timing }) => ({
      ...kind,
      reconcile: async (request) => {
        const result = await kind.reconcile(request);
        return { ...result, status: { ...result.status, userCount: timing.nowMs() } };
      },
    }),
  },
  'deletes a volume claim': {
    tenants: (kind, { api, caches }) => ({
      ...kind,
      reconcile: async (request) => {
        const [claim] = caches.of(volumeClaims).list();
        const { namespace, name } = claim?.metadata ?? {};
        if (name !== undefined) await api.call({ verb: 'delete', resource: volumeClaims, namespace, name });
        return kind.reconcile(request);
      },
    }),
  },
  'reports an older generation': {
    api: (api) => {
      let statuses = 0;
      return {
        call: (request) => {
          if (request.subresource !== 'status') return api.call(request);
          statuses += 1;
          return api.call({ ...request, body: outdated(request.body, statuses % 2 === 0) });
        },
        watch: (request) => api.watch(request),
      };
    },
  },
  'creates an organisation in every reconcile': {
    tenants: (kind) => ({
      ...kind,
      reconcile: (request) => {
        const uid = randomUUID();
        const { metadata, spec } = request.resource;
        const another = { ...request.resource, metadata: { ...metadata, uid }, status: {} };
        return kind.reconcile({ ...request, resource: { ...another, spec: { ...spec, subdomain: uid } } });
      },
    }),
  },
} as const satisfies Readonly<Record<string, Mutation>>;
