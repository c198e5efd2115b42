import { createMatcher } from './match.ts';
import type { RouteRule } from './table.ts';
import { judgeTarget } from './target.ts';

/** Whether the gateway routes a path of an OpenAPI document, with `{name}` for parameters, to a service. */
export type IsRouted = (service: string, path: string) => boolean;

export function createIsRouted(table: readonly RouteRule[]): IsRouted {
  const match = createMatcher(table);
  return (service, path) => {
    const sample = path.replaceAll(/\{[^}]*\}/g, '0'.repeat(32));
    return judgeTarget(sample).kind === 'clean' && match(sample)?.service === service;
  };
}
