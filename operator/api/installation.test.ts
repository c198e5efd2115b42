import { expect, test } from 'vitest';
import type { KubeObject } from '../kube/resource.ts';
import { installationMap, installationText, spireText } from '../platform/testing/installation.fixture.ts';
import { parseInstallation } from './installation.ts';
import { labels, MANAGED_BY } from './names.ts';

test('an installation is parsed with its defaults', () => {
  const found = parseInstallation([installationMap()]);
  expect(found.endpoints.tenant.grpc).toEqual({ host: 'service-tenant', port: 7000 });
  expect(found.identity).toMatchObject({ provider: 'serviceAccount', caConfigMap: 'chancery-identity-ca' });
  expect(found.images.pullPolicy).toBe('IfNotPresent');
  expect(parseInstallation([installationMap(spireText)]).identity).toEqual({
    provider: 'spire',
    csiDriver: 'csi.spiffe.io',
    socketFile: 'spire-agent.sock',
  });
});

test('children of the operator and other ConfigMaps with the label are ignored', () => {
  const { metadata, ...rest } = installationMap();
  const child: KubeObject = {
    ...rest,
    metadata: {
      ...metadata,
      name: 'main-config',
      labels: { ...metadata.labels, [labels.managedBy]: MANAGED_BY },
    },
  };
  const other: KubeObject = { ...rest, metadata: { ...metadata, name: 'ca' }, data: { 'ca.crt': '' } };
  expect(parseInstallation([child, other, installationMap()]).installation).toBe('acme.chancery.local');
  expect(() => parseInstallation([child, other])).toThrow('There is no ConfigMap with the label');
});

const { endpoints } = installationText;
test.each([
  [
    [installationMap(), { ...installationMap(), metadata: { ...installationMap().metadata, name: 'two' } }],
    'Several',
  ],
  [[installationMap({ ...installationText, extra: 1 })], 'extra'],
  [[installationMap({ ...installationText, installation: 'other' })], 'differs from the label'],
  [
    [
      installationMap({
        ...installationText,
        endpoints: { ...endpoints, wallet: { grpc: 'x', https: 'y:1' } },
      }),
    ],
    'endpoints.wallet.grpc',
  ],
  [
    [installationMap({ ...installationText, endpoints: { ...endpoints, nats: {} } })],
    'expected url or secret',
  ],
  [[{ ...installationMap(), data: { 'installation.json': '{' } }], 'is not JSON'],
])('an invalid description is refused with the setting: %#', (configMaps, message) => {
  expect(() => parseInstallation(configMaps)).toThrow(message);
});
