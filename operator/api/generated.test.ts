import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { generatedFiles } from './generated.ts';
import { RESERVED_SUBDOMAINS } from './tenant.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

test('the generated files are up to date', () => {
  const files = generatedFiles();
  expect([...files.keys()].length).toBe(9);
  const stale = [...files].filter(
    ([path, text]) => !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8') !== text,
  );
  expect(stale.map(([path]) => path)).toEqual([]);
  expect(generatedFiles()).toEqual(files);
});

test('the generated folders contain no other files', () => {
  const files = generatedFiles();
  for (const folder of ['crds', 'charts/chancery-crds/templates']) {
    const existing = readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
    expect(existing.filter((path) => !files.has(path))).toEqual([]);
  }
});

test('the chart differs from crds/ only in the annotation for Helm', () => {
  const files = generatedFiles();
  for (const plural of ['registers', 'tenants', 'validatorsets']) {
    const plain = files.get(`crds/${plural}.chancery.dev.yaml`);
    const chart = files.get(`charts/chancery-crds/templates/${plural}.yaml`);
    const annotation = '  annotations:\n    helm.sh/resource-policy: keep\n';
    expect(chart).toContain(annotation);
    expect(chart?.replace(annotation, '')).toBe(plain);
    expect(chart, 'Helm would read it as a template').not.toContain('{{');
  }
  const chart = files.get('charts/chancery-crds/templates/admission.yaml');
  expect(chart?.match(/\{\{[^}]*\}\}/g)).toEqual(['{{.Values.systemRegisterGroups|toJson}}']);
});

test('no CRD preserves unknown fields or has a pattern without a remedy', () => {
  for (const [path, text] of generatedFiles()) {
    expect(text, path).not.toContain('preserve-unknown-fields');
    expect(text, path).not.toMatch(/^ *pattern:/m);
  }
});

test('the reserved subdomains are those of the tenant service', () => {
  const service = readFileSync(join(root, 'components/tenant/organizations/organization.ts'), 'utf8');
  const listed = /'([a-z ]+)'\.split\(' '\)/.exec(service)?.[1]?.split(' ');
  expect(listed).toEqual([...RESERVED_SUBDOMAINS]);
});
