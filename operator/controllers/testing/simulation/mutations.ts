import { randomUUID } from 'node:crypto';
import type { Tenant } from '../../../api/tenant.ts';
import type { Api } from '../../../kube/api.ts';
import { volumeClaims } from '../../../kube/kinds.ts';
import { isRecord } from '../../../kube/resource.ts';
import type { Dependencies } from '../../reconciler/dependencies.ts';
import type { KindHandler } from '../../reconciler/kind.ts';

/** An error that is put into the operator on purpose: whoever judges it must notice. */
export interface Mutation {
  /** Every call passes, whoever leads. */
  readonly isUnfenced?: boolean;
  /** Members seem to answer whether or not they do. */
  readonly trustsEveryMember?: boolean;
  readonly api?: (api: Api) => Api;
  readonly tenants?: (kind: KindHandler<Tenant>, dependencies: Dependencies) => KindHandler<Tenant>;
}

export const noMutation: Mutation = {};

/** The same body with a status that says of every second generation that the one before was looked at. */
function outdated(body: unknown, isOdd: boolean): unknown {
  const status = isRecord(body) ? body['status'] : undefined;
  if (!isRecord(body) || !isRecord(status) || !isOdd) return body;
  return { ...body, status: { ...status, observedGeneration: 0 } };
}

/** Mutations by what the operator does then. */
export const mutations = {
  'writes without the lease': { isUnfenced: true },
  'believes every member to be well': { trustsEveryMember: true },
  'lets objects go before their cleanup': {
    tenants: (kind) => ({ ...kind, finalize: async () => ({ done: true }) }),
  },
  'writes whenever it looks': {
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
  'says that it saw an older generation': {
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
  'makes an organisation at every look': {
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
