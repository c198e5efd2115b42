import type { IsRouted } from '../openapi/merge.ts';
import { createMatcher } from './match.ts';
import { routingTable } from './table.ts';
import { judgeTarget } from './target.ts';

/** Whether the gateway routes a path of an OpenAPI document, with `{name}` for parameters, to a service. */
export function createIsRouted(): IsRouted {
  const match = createMatcher(routingTable);
  return (service, path) => {
    const sample = path.replaceAll(/\{[^}]*\}/g, '0'.repeat(32));
    return judgeTarget(sample).kind === 'clean' && match(sample)?.service === service;
  };
}
