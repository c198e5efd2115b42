import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { chartServices, renderChartServices, renderEntries, withClientIds } from './services.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

it('the chart and spire/ are generated from the catalogue of services by npm run gen', () => {
  expect(read('charts/chancery/files/services.json')).toBe(renderChartServices());
  expect(read('spire/entries.json')).toBe(renderEntries());
  expect(withClientIds(read('spire/cluster-spiffe-ids.yaml'))).toBe(read('spire/cluster-spiffe-ids.yaml'));
});

it('a service can be reached by its callers only', () => {
  const { edges, toValidators } = chartServices();
  expect(edges['service-register']).toEqual({
    7000: ['service-wallet', 'validators', 'service-blueprint', 'service-operator'],
    7443: [
      'service-gateway',
      'service-register',
      'service-blueprint',
      'service-credential',
      'service-operator',
    ],
  });
  expect(edges['service-gateway']).toEqual({});
  expect(toValidators).toEqual({
    'service-gateway': [7443],
    'service-register': [5000, 7443],
    'service-operator': [5000, 7443],
  });
});

it('a file without the list of client ids is refused', () => {
  expect(() => withClientIds('spec: {}')).toThrow('no list of client ids');
});
