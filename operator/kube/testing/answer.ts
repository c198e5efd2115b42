import { type ClusterState, StatusError, type Target } from './cluster-state.ts';

/** A parsed request. */
export interface Incoming {
  readonly method: string;
  readonly target: Target;
  readonly query: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly body: unknown;
}

/** Response of an API server to any request except a watch. */
export function answer(state: ClusterState, incoming: Incoming): unknown {
  const { method, target, body } = incoming;
  if (method === 'GET') return target.name === undefined ? listBody(state, incoming) : state.get(target);
  if (method === 'POST') return state.create(target, body);
  if (method === 'PUT') return state.update(target, body);
  if (method === 'DELETE') return state.delete(target, body);
  if (incoming.contentType.startsWith('application/apply-patch')) {
    const manager = incoming.query['fieldManager'];
    if (manager === undefined)
      throw new StatusError(400, 'BadRequest', 'fieldManager is required for apply patch');
    return state.apply(target, body, manager);
  }
  return state.merge(target, body);
}

function listBody(state: ClusterState, { target, query }: Incoming): unknown {
  const [version = String(state.version), from = '0'] = query['continue']?.split(':') ?? [];
  const limit = Number(query['limit'] ?? Infinity);
  const all = state.list(target);
  const start = Number(from);
  const remaining = all.length - start - limit;
  const metadata = {
    resourceVersion: version,
    ...(remaining > 0 ? { continue: `${version}:${start + limit}` } : {}),
  };
  return { kind: 'List', apiVersion: 'v1', metadata, items: all.slice(start, start + limit) };
}

/** The body of a refusal. */
export function statusBody({ status, reason, message }: StatusError): unknown {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message, code: status };
}
