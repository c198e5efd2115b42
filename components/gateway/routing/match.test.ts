import { describe, expect, it } from 'vitest';
import { listServices } from '#core/identity/services.ts';
import { createMatcher } from './match.ts';
import { routingTableOf } from './table.ts';

const services = listServices();
const routingTable = routingTableOf(services);
const match = createMatcher(routingTable);
const registerId = '0123456789abcdef0123456789abcdef';

describe('routing table', () => {
  it.each([
    ['/api/registers', 'register'],
    ['/api/registers/', 'register'],
    [`/api/registers/${registerId}`, 'register'],
    [`/api/registers/${registerId}/dockets/0/transactions`, 'register'],
    ['/api/registers/available', 'peer'],
    ['/api/registers/subscriptions', 'peer'],
    ['/api/registers/cache', 'peer'],
    ['/api/registers/bulk-advertise', 'peer'],
    [`/api/registers/${registerId}/advertise`, 'peer'],
    [`/api/registers/${registerId}/subscribe`, 'peer'],
    [`/api/registers/${registerId}/cache`, 'peer'],
    ['/api/registers/not-a-register/advertise', 'register'],
    [`/api/registers/${registerId}/advertise/x`, 'register'],
    ['/odata/Registers', 'register'],
    ['/odata', 'register'],
    ['/health/sync', 'register'],
    ['/api/v1/transactions/validate', 'validator'],
    ['/api/metrics/dockets', 'validator'],
    ['/api/admin/config', 'validator'],
    [`/api/admin/validators/${registerId}/evidence`, 'validator'],
    ['/api/service-auth/token', 'tenant'],
    ['/me/persona', 'tenant'],
    ['/api/v1/me/devices', 'tenant'],
    ['/api/v1/trust/trustlists', 'tenant'],
    ['/auth/social/callback', 'tenant'],
    ['/.well-known/jwks.json', 'tenant'],
    ['/.well-known/oauth-authorization-server/api/service-auth', 'tenant'],
    ['/.well-known/oauth-authorization-server', 'credential'],
    ['/api/wallets', 'wallet'],
    ['/api/v1/wallets/w1abc/access', 'wallet'],
    ['/api/v1/wallet/holder-keys', 'wallet'],
    ['/api/instances/', 'blueprint'],
    ['/hubs/chat/negotiate', 'blueprint'],
    ['/token', 'credential'],
    ['/health', 'gateway'],
    ['/docs', 'gateway'],
    ['/docs/static/swagger-ui.css', 'gateway'],
    ['/openapi.json', 'gateway'],
    ['/openapi/tenant.json', 'gateway'],
  ])('sends %s to %s', (path, service) => {
    expect(match(path)?.service).toBe(service);
  });

  it.each([
    '/',
    '/api',
    '/api/',
    '/unknown',
    '/api/unknown',
    '/api/v1',
    '/me',
    '/me/persona/x',
    '/token/x',
    '/health/',
    '/openapi',
    '/apiregisters',
  ])('has no route for %s', (path) => {
    expect(match(path)).toBeUndefined();
  });

  it('contains only known services, and hubs below one path', () => {
    expect(routingTable.length).toBeGreaterThan(40);
    for (const rule of routingTable) {
      expect(services.map(({ name }) => name)).toContain(rule.service);
      expect(rule.hub === true, rule.path).toBe(rule.path.startsWith('/hubs/'));
    }
  });

  it('has no line that an earlier one shadows', () => {
    for (const rule of routingTable) {
      const sample = rule.path
        .replace('/**', '/below')
        .replaceAll(/\{[^}]*hex32\}/g, registerId)
        .replaceAll(/\{[^}]*\}/g, 'some.json');
      expect(match(sample), rule.path).toBe(rule);
    }
  });
});
