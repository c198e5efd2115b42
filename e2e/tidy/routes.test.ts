import { describe, expect, it } from 'vitest';
import { POLICY_NAMES } from '#core/identity/policies.ts';
import { type MountedRoute, mountedRoutes, shape } from './mounted.ts';
import { document1 } from './routes/document-1.ts';
import { document2 } from './routes/document-2.ts';
import { document3 } from './routes/document-3.ts';
import { ownRoutes } from './routes/own.ts';
import type { Component, SpecifiedRoute } from './routes/table.ts';

const specified = [...document1, ...document2, ...document3];
const tables: readonly SpecifiedRoute[] = [...specified, ...ownRoutes];
const components = [...new Set(tables.map((route) => route.component))];

interface Route {
  readonly component: Component;
  readonly method: string;
  readonly path: string;
}

function key(route: Route): string {
  return `${route.component} ${route.method} ${shape(route.path)}`;
}

const mounted: readonly MountedRoute[] = (await Promise.all(components.map(mountedRoutes))).flat();
const mountedByKey = new Map(mounted.map((route) => [key(route), route]));

describe('routes of the specification', () => {
  it('examines something', () => {
    expect(document1.length).toBeGreaterThan(100);
    expect(document2.length).toBeGreaterThan(60);
    expect(document3.length).toBeGreaterThan(70);
    expect(mounted.length).toBeGreaterThan(40);
  });

  it('lists each route once', () => {
    const keys = tables.map(key);
    expect(keys.filter((one, position) => keys.indexOf(one) !== position)).toEqual([]);
  });

  it('serves with known policies only', () => {
    const served = tables.filter((route) => route.status === 'served');
    const known: readonly string[] = POLICY_NAMES;
    expect(served.filter((route) => !known.includes(route.policy)).map(key)).toEqual([]);
  });

  it('serves what is marked served', () => {
    const missing = tables.filter((route) => route.status === 'served' && !mountedByKey.has(key(route)));
    expect(missing.map(key)).toEqual([]);
  });

  it('serves it with the authentication of the table', () => {
    const different = tables.flatMap((route) => {
      const actual = mountedByKey.get(key(route))?.policy;
      if (route.status !== 'served' || actual === undefined || actual === route.policy) return [];
      return [`${key(route)}: ${actual} instead of ${route.policy}`];
    });
    expect(different).toEqual([]);
  });

  it('does not have what is marked pending', () => {
    const early = tables.filter((route) => route.status === 'pending' && mountedByKey.has(key(route)));
    expect(early.map(key)).toEqual([]);
  });

  it('has no route that is in no table', () => {
    const known = new Set(tables.map(key));
    expect([...mountedByKey.keys()].filter((one) => !known.has(one))).toEqual([]);
  });
});
