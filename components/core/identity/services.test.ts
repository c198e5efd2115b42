import { describe, expect, it } from 'vitest';
import { ROUTES } from './service-routes.ts';
import { clientIdOf, findServiceName, LISTENER_PORTS, listServices, SERVICES } from './services.ts';

const routedNames = Object.keys(ROUTES);

describe('the catalogue of services', () => {
  const services = listServices();

  it('names only services and listeners that exist', () => {
    for (const { calls } of services) {
      expect(Object.keys(SERVICES)).toEqual(expect.arrayContaining(Object.keys(calls)));
      for (const listeners of Object.values(calls)) {
        expect(Object.keys(LISTENER_PORTS)).toEqual(expect.arrayContaining([...listeners]));
      }
    }
  });

  it('has a program for each service that is served, and for no other', () => {
    for (const { status, main } of services) expect(main !== undefined).toBe(status === 'served');
  });

  it('has routes for each routed service, which the gateway calls', () => {
    const routed = services.filter(({ routes }) => routes.length > 0);
    expect(routed.map(({ name }) => name).sort()).toEqual(routedNames.toSorted());
    const gateway = services.find(({ name }) => name === 'gateway');
    expect(Object.keys(gateway?.calls ?? {}).sort()).toEqual(routedNames.toSorted());
  });

  it('gives each service one client id, by which it is found', () => {
    for (const { name, members } of services) {
      expect(findServiceName(clientIdOf(name))).toBe(members === true ? undefined : name);
      expect(findServiceName(`${name}-0`)).toBe(members === true ? name : undefined);
    }
  });

  it('names the peer service before the register service, below whose paths its own lie', () => {
    const names = services.map(({ name }) => name);
    expect(names.indexOf('peer')).toBeLessThan(names.indexOf('register'));
  });
});
