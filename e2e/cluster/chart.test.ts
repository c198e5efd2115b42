import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import { describe, expect, it, test } from 'vitest';
import { systemRegisterId } from '#core/ledger/register-id.ts';
import { listValues, renderValues, withTable } from '../../tools/charts/values.ts';
import { renderServerTags } from '../../tools/images/servers.ts';
import { charts } from './chart.ts';
import { given, hasHelm, nameOf, ofKind, type Rendered, render } from './rendered.ts';
import { tagsOfServers } from './versions.ts';

const read = (name: string): string => readFileSync(charts('chancery', name), 'utf8');
const schema: unknown = JSON.parse(read('values.schema.json'));
const demo = ['-f', charts('chancery', 'values-demo.yaml')];
const names = (rendered: Rendered, kind: string): readonly string[] =>
  ofKind(rendered, kind).map(nameOf).sort();

describe('the values of the chart', () => {
  it('are each described, with a default', () => {
    const values = listValues(schema);
    expect(values.length).toBeGreaterThan(100);
    const bare = values.filter(({ meaning, standard }) => meaning.length < 5 || standard === undefined);
    expect(bare.map(({ name }) => name)).toEqual([]);
  });

  it('are in values.yaml and in the README as "npm run gen" writes them', () => {
    expect(read('values.yaml')).toBe(renderValues(schema));
    expect(read('README.md')).toBe(withTable(read('README.md'), schema));
  });
});

test('the tags of PostgreSQL and NATS are in the chart as "npm run gen" writes them', () => {
  expect(read('files/image-tags.json')).toBe(renderServerTags(charts('..')));
});

describe.skipIf(!hasHelm)('the chart', () => {
  it.each([
    ['demo', demo],
    ['production', given],
  ])('passes helm lint with values for %s', (_, values) => {
    const output = execFileSync('helm', ['lint', '--strict', charts('chancery'), ...values], {
      encoding: 'utf8',
    });
    expect(output).toContain('0 chart(s) failed');
  });

  it('renders all dependencies with the demo values', () => {
    const rendered = render(...demo);
    expect(rendered.err).toBe('');
    const services = [
      'service-blueprint',
      'service-credential',
      'service-gateway',
      'service-operator',
      'service-register',
      'service-tenant',
      'service-wallet',
    ];
    expect(names(rendered, 'Deployment')).toEqual(['nats', ...services, 'svid-issuer']);
    expect(names(rendered, 'PodDisruptionBudget')).toEqual([...services, 'svid-issuer']);
    expect(names(rendered, 'StatefulSet')).toEqual(['postgres']);
    expect(names(rendered, 'Ingress')).toEqual(['service-gateway']);
    expect(names(rendered, 'HTTPRoute')).toEqual([]);
  });

  it('start PostgreSQL again for each role that a release adds', () => {
    const rendered = render(...demo);
    const named = (kind: string) => ofKind(rendered, kind).find((text) => nameOf(text) === 'postgres') ?? '';
    const created = [...named('Secret').matchAll(/create role chancery_(\w+) login/g)].map(
      ([, role]) => role,
    );
    expect(created.length).toBeGreaterThan(3);
    expect(/chancery\.dev\/roles: (\S+)/.exec(named('StatefulSet'))?.[1]).toBe(created.join());
  });

  it('uses existing dependencies with the production values', () => {
    const rendered = render(...given);
    expect([rendered.code, rendered.err]).toEqual([0, '']);
    expect(names(rendered, 'StatefulSet')).toEqual([]);
    expect(names(rendered, 'Secret')).toEqual([]);
    expect(names(rendered, 'ClusterSPIFFEID')).toEqual([
      'chancery-services-acme',
      'chancery-validators-acme',
    ]);
    for (const text of ofKind(rendered, 'Deployment')) {
      expect(text).toContain('csi: { driver: csi.spiffe.io, readOnly: true }');
      expect(text).not.toContain('CHANCERY_IDENTITY_ISSUER');
    }
  });

  it('registers the same identities as spire/cluster-spiffe-ids.yaml', () => {
    const specs = (texts: readonly string[]) =>
      texts
        .flatMap((text) => loadAll(text.replaceAll('acme', 'chancery')))
        .map((object) => ({ ...(object as { spec: object }).spec, ttl: '1h' }));
    const literal = (spec: object) => JSON.stringify(spec).replaceAll('{{ .PodMeta.Namespace }}', 'chancery');
    const manifest = readFileSync(charts('..', 'spire', 'cluster-spiffe-ids.yaml'), 'utf8');
    const ours = specs(ofKind(render(...given), 'ClusterSPIFFEID')).map(literal);
    expect(ours.map((text) => JSON.parse(text))).toEqual(
      specs([manifest]).map((spec) => JSON.parse(literal(spec))),
    );
  });

  it('renders every container for the pod security level restricted', () => {
    const rendered = render(...demo);
    const withPods = ['Deployment', 'StatefulSet', 'Job'].flatMap((kind) => ofKind(rendered, kind));
    expect(withPods.length).toBeGreaterThan(10);
    for (const text of withPods) {
      const containers = text.match(/^ +image: /gm)?.length ?? 0;
      for (const rule of [
        'allowPrivilegeEscalation: false',
        'readOnlyRootFilesystem: true',
        'drop: \\[ALL\\]',
      ])
        expect(text.match(new RegExp(rule, 'g'))?.length, `${nameOf(text)} ${rule}`).toBe(containers);
      expect(text).toContain('runAsNonRoot: true');
      expect(text).toContain('seccompProfile: { type: RuntimeDefault }');
      expect(text).toMatch(/automountServiceAccountToken: (?:true|false)/);
    }
  });

  it('gives the operator no secrets, no exec and no wildcard', () => {
    const roles = ['Role', 'ClusterRole']
      .flatMap((kind) => ofKind(render(...demo), kind))
      .filter((text) => nameOf(text).includes('operator'));
    expect(roles.length).toBeGreaterThan(1);
    for (const text of roles) expect(text).not.toMatch(/secrets|pods\/exec|\*|escalate|bind\b|impersonate/);
  });

  it.each([
    ['Own', [], 'Role', ['chancery-operator', 'chancery-operator-lease']],
    [
      'List',
      ['operator.namespaces={acme,other}'],
      'Role',
      ['chancery-operator', 'chancery-operator', 'chancery-operator-lease'],
    ],
    [
      'All',
      [],
      'ClusterRole',
      ['chancery-operator-acme', 'chancery-svid-issuer-acme', 'chancery-uninstall-guard-acme'],
    ],
  ])('gives the operator what its scope %s needs', (scope, more, kind, expected) => {
    const set = [`operator.scope=${scope}`, ...more].flatMap((one) => ['--set', one]);
    const found = names(render(...demo, ...set), kind).filter(
      (name) => !['svid-issuer', 'uninstall-guard'].includes(name),
    );
    expect(found).toEqual(expected);
  });

  it.each([
    ['Own', [], ['acme'], 'acme'],
    ['List', ['operator.namespaces={acme,other}'], ['acme', 'other'], 'acme,other'],
    ['All', [], [], ''],
  ])(
    'lets the uninstall guard check the namespaces of its operator, with scope %s',
    (scope, more, roles, namespaces) => {
      const set = [`operator.scope=${scope}`, ...more].flatMap((one) => ['--set', one]);
      const rendered = render(...demo, ...set);
      const own = ofKind(rendered, 'Role').filter((text) => nameOf(text) === 'uninstall-guard');
      expect(own.map((text) => /^ {2}namespace: (.+)$/m.exec(text)?.[1])).toEqual(roles);
      const [job] = ofKind(rendered, 'Job').filter((text) => nameOf(text) === 'uninstall-guard');
      expect(job).toContain(`{ name: NAMESPACES, value: "${namespaces}" }`);
    },
  );

  it('renders HTTPRoute, HorizontalPodAutoscaler and ServiceMonitor when enabled', () => {
    const set = [
      'httpRoute.enabled=true',
      'httpRoute.parentRefs[0].name=public',
      'httpRoute.hostnames={chancery.example.org}',
      'metrics.serviceMonitor.enabled=true',
      'gateway.autoscaling.enabled=true',
    ].flatMap((one) => ['--set', one]);
    const rendered = render(...given, ...set);
    expect(names(rendered, 'HTTPRoute')).toEqual(['service-gateway']);
    expect(names(rendered, 'ServiceMonitor')).toEqual(['chancery']);
    expect(names(rendered, 'HorizontalPodAutoscaler')).toEqual(['service-gateway']);
    const gateway = ofKind(rendered, 'Deployment').find((text) => nameOf(text) === 'service-gateway');
    expect(gateway).not.toMatch(/^ {2}replicas:/m);
  });

  it('gives the tenant service initial secrets of services when they exist', () => {
    const mounted = (...values: readonly string[]) =>
      ofKind(render(...given, ...values), 'Deployment').filter((text) => text.includes('service-secrets'));
    expect(mounted()).toEqual([]);
    const [tenant = '', ...others] = mounted('--set', 'tenant.serviceSecrets.existingSecret=firsts');
    expect(others).toEqual([]);
    expect(nameOf(tenant)).toBe('service-tenant');
    expect(tenant).toContain('{ name: CHANCERY_SERVICE_SECRETS_DIR, value: /etc/chancery/service-secrets }');
    expect(tenant).toContain('secret: { secretName: firsts, defaultMode: 0440 }');
  });

  it('has no operator where the operator of another release serves it', () => {
    const rendered = render(...demo, '--set', 'operator.servedFrom=platform');
    expect(names(rendered, 'Deployment')).not.toContain('service-operator');
    expect(names(rendered, 'ServiceAccount')).toContain('service-operator');
    expect(names(rendered, 'Role').filter((name) => name.includes('operator'))).toEqual([]);
    const [described] = ofKind(rendered, 'ConfigMap').filter(
      (text) => nameOf(text) === 'chancery-installation',
    );
    expect(described).toContain('"operatorNamespace": "platform"');
    const doors = ofKind(rendered, 'NetworkPolicy').filter((text) =>
      text.includes('"kubernetes.io/metadata.name":"platform"'),
    );
    expect(doors.map(nameOf).sort()).toEqual([
      'service-register',
      'service-tenant',
      'service-wallet',
      'svid-issuer',
    ]);
  });

  it('creates a ValidatorSet only when enabled, and keeps it', () => {
    expect(names(render(...given), 'ValidatorSet')).toEqual([]);
    expect(names(render(...demo), 'ValidatorSet')).toEqual([]);
    const set = ['bootstrap.enabled=true', 'bootstrap.validatorSet.spec.storage.size=8Gi'];
    const [made] = ofKind(render(...given, ...set.flatMap((one) => ['--set', one])), 'ValidatorSet');
    expect(nameOf(made ?? '')).toBe('main');
    expect(made).toContain('helm.sh/resource-policy: keep');
    expect(made).toMatch(/^spec:\n {2}replicas: 4\n {2}storage:\n {4}size: 8Gi$/m);
  });

  it('creates the system register only when enabled, with the id that the register service expects', () => {
    const set = (...values: string[]) => values.flatMap((one) => ['--set', one]);
    expect(names(render(...given, ...set('bootstrap.enabled=true')), 'Register')).toEqual([]);
    const values = set(
      'bootstrap.enabled=true',
      'bootstrap.systemRegister.enabled=true',
      'systemRegister.networkId=blue',
    );
    const rendered = render(...given, ...values);
    const [made] = ofKind(rendered, 'Register');
    expect(made).toContain('helm.sh/resource-policy: keep');
    expect(made).toContain(`registerId: "${systemRegisterId('blue')}"`);
    expect(made).toMatch(/^ {2}purpose: System$/m);
    const [service] = ofKind(rendered, 'Deployment').filter((text) => nameOf(text) === 'service-register');
    expect(service).toMatch(
      /CHANCERY_SYSTEM_REGISTER_NETWORK\n\s+value: blue|CHANCERY_SYSTEM_REGISTER_NETWORK, value: "blue"/,
    );
  });

  it('lists the key-encryption keys of wallets in their order', () => {
    const keys = ['--set', 'wallet.keyEncryptionKey.keys={key-2,key}'];
    const rendered = render(...given, ...keys);
    const [wallet] = ofKind(rendered, 'Deployment').filter((text) => nameOf(text) === 'service-wallet');
    expect(wallet).toContain('value: "/etc/chancery/kek/key-2,/etc/chancery/kek/key"');
    expect(wallet).toContain('{ name: CHANCERY_WALLET_DELETION_HOURS, value: "24" }');
  });

  it.each([
    [[], '1073741824'],
    [['--set', 'blueprint.fileQuotaBytes=9007199254740991'], '9007199254740991'],
  ])('writes the quota of files with all its digits (%j)', (values, bytes) => {
    const rendered = render(...given, ...values);
    const [blueprint] = ofKind(rendered, 'Deployment').filter((text) => nameOf(text) === 'service-blueprint');
    expect(blueprint).toContain(`{ name: CHANCERY_FILE_QUOTA_BYTES, value: "${bytes}" }`);
  });

  it.each([
    ['a missing Secret', [], 'wallet.keyEncryptionKey.existingSecret (key key, 32 random bytes)'],
    [
      'several key-encryption keys without a Secret of their own',
      [...demo, '--set', 'wallet.keyEncryptionKey.keys={key-2,key}'],
      'wallet.keyEncryptionKey.existingSecret (keys key-2, key, 32 random bytes each)',
    ],
    [
      'more connections than PostgreSQL takes',
      [...demo, '--set', 'tenant.replicas=9'],
      'this installation can open 185 = 5 (migrations) + (9 + 1) x 10 (tenant) + (1 + 1) x 10 (wallet)',
    ],
    [
      'an unknown value',
      [...demo, '--set', 'tenant.relicas=9'],
      "additional properties 'relicas' not allowed",
    ],
    ['a list without the own namespace', [...demo, '--set', 'operator.scope=List'], 'add acme'],
    ['no trust domain', [...demo, '--set', 'installation=a.b-'], 'installation'],
    ['an HTTPRoute to nowhere', [...demo, '--set', 'httpRoute.enabled=true'], 'httpRoute.parentRefs'],
  ])('refuses %s with a message that helps', (_, args, message) => {
    const { code, err } = render(...args);
    expect(code).not.toBe(0);
    expect(err).toContain(message);
  });

  it('does not change PostgreSQL and NATS when the tag of the images changes', () => {
    const podsAt = (tag: string) => {
      const rendered = render(...demo, '--set', `image.tag=${tag}`);
      const objects = [...ofKind(rendered, 'StatefulSet'), ...ofKind(rendered, 'Deployment')];
      return new Map(objects.map((text) => [nameOf(text), text.slice(text.indexOf('  template:'))]));
    };
    const [before, after] = [podsAt('1.0.0'), podsAt('1.1.0')];
    const changed = [...before.keys()].filter((name) => before.get(name) !== after.get(name));
    expect([...before.keys()].filter((name) => !changed.includes(name))).toEqual(['postgres', 'nats']);
    for (const [image, tag] of Object.entries(tagsOfServers)) {
      const images = [...before.values()].filter((text) => text.includes(`/${image}:`));
      expect(images.map((text) => text.includes(`chancery.local/${image}:${tag}\n`))).toEqual([true]);
    }
  });

  it('does not change a pod template when only the version of the chart changes', () => {
    const pods = ofKind(render(...demo), 'Deployment').map((text) => text.slice(text.indexOf('  template:')));
    for (const text of pods) expect(text).not.toMatch(/helm\.sh\/chart|app\.kubernetes\.io\/version/);
  });
});
