import type { PolicyName } from '#core/identity/policies.ts';

/** Policy of pending routes; core/identity gets it with those routes. */
type ComingPolicy = 'CanTransactEthereum';

export type RoutePolicy = PolicyName | ComingPolicy;

/** Component that answers a route. */
export type Component =
  | 'gateway'
  | 'tenant'
  | 'wallet'
  | 'register'
  | 'validator'
  | 'peer'
  | 'blueprint'
  | 'credential'
  | 'svid-issuer';

/** `served`: the route exists, with that policy. `pending`: it does not exist, not even as a stub. */
export type RouteStatus = 'served' | 'pending';

/** One route of a specification document, or one of this project's own. */
export interface SpecifiedRoute {
  readonly component: Component;
  readonly method: string;
  /** With `{name}` for parameters, as the specification writes them. */
  readonly path: string;
  readonly policy: RoutePolicy;
  readonly status: RouteStatus;
}

type Line = `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string} ${RoutePolicy}`;

/** Parses lines of `METHOD path policy`. */
export function routes(component: Component, status: RouteStatus, lines: readonly Line[]): SpecifiedRoute[] {
  return lines.map((line) => {
    const [method = '', path = '', policy = ''] = line.split(' ');
    return { component, status, method, path, policy: policy as RoutePolicy };
  });
}
