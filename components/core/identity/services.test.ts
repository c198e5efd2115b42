import { describe, expect, it } from 'vitest';
import { ROUTED_SERVICES } from './service-routes.ts';
import { clientIdOf, findServiceName, LISTENER_PORTS, listServices, SERVICE_NAMES } from './services.ts';

describe('the catalogue of services', () => {
  const services = listServices();

  it('names only services and listeners that exist', () => {
    for (const { calls } of services) {
      expect(SERVICE_NAMES).toEqual(expect.arrayContaining(Object.keys(calls)));
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
    expect(routed.map(({ name }) => name).sort()).toEqual([...ROUTED_SERVICES].sort());
    const gateway = services.find(({ name }) => name === 'gateway');
    expect(Object.keys(gateway?.calls ?? {}).sort()).toEqual([...ROUTED_SERVICES].sort());
  });

  it('gives each service one client id, by which it is found', () => {
    for (const { name, members } of services) {
      expect(findServiceName(clientIdOf(name))).toBe(members === true ? undefined : name);
      expect(findServiceName(`${name}-0`)).toBe(members === true ? name : undefined);
    }
  });

  it('names the peer service before the register service, below whose paths its own lie', () => {
    expect(ROUTED_SERVICES.indexOf('peer')).toBeLessThan(ROUTED_SERVICES.indexOf('register'));
  });
});
