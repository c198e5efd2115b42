import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Answer,
  type ApiServer,
  eventually,
  kubectl,
  openApiServer,
} from '../../e2e/cluster/kubectl.ts';
import { KINDS } from './kinds.ts';
import type { ManagedKind } from './names.ts';
import { structuralSchema } from './structural.ts';
import { goodSpecsOf, mutated } from './testing/arbitraries.ts';
import { badEdits, badObjects, goodEdits, goodSpecs } from './testing/bad-objects.ts';

const root = join(fileURLToPath(import.meta.url), '../../..');
const namespace = `chancery-contract-${process.pid}`;
const apiVersion = 'chancery.dev/v1alpha1';
const runs = process.env['CHANCERY_TEST_LENGTH'] === 'full' ? 1000 : 100;

let api: ApiServer;

const pluralOf = (kind: ManagedKind): string => KINDS.find((each) => each.kind === kind)?.plural ?? '';
const pathOf = (kind: ManagedKind): string => `/apis/${apiVersion}/namespaces/${namespace}/${pluralOf(kind)}`;
const objectOf = (kind: ManagedKind, name: string, spec: object) => ({
  apiVersion,
  kind,
  metadata: { name, namespace },
  spec,
});

/** Creates an object with a dry run. */
function dryRun(kind: ManagedKind, spec: object, name = 'trial'): Promise<Answer> {
  const query = '?dryRun=All&fieldValidation=Strict';
  return api.request('POST', pathOf(kind) + query, objectOf(kind, name, spec));
}

const messageOf = ({ body }: Answer): string => String(body['message']);

beforeAll(async () => {
  await kubectl('create', 'namespace', namespace);
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  const names = KINDS.map((each) => `crd/${each.plural}.chancery.dev`);
  await kubectl('wait', '--for=condition=Established', '--timeout=60s', ...names);
  api = await openApiServer();
  await eventually(async () => {
    for (const { kind } of KINDS) expect((await api.request('GET', pathOf(kind))).status).toBe(200);
  });
});

afterAll(async () => {
  await api?.stop();
  await kubectl('delete', 'namespace', namespace, '--wait=false');
});

describe('the API server', () => {
  test('stores the generated schemas unchanged, every text of the YAML included', async () => {
    for (const { plural, spec } of KINDS) {
      const crd = JSON.parse(await kubectl('get', 'crd', `${plural}.chancery.dev`, '-o', 'json'));
      const stored = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec;
      expect(stored).toEqual(JSON.parse(JSON.stringify(structuralSchema(spec))));
      const faults = crd.status.conditions.filter(
        (each: { type: string; status: string }) =>
          each.type === 'NonStructuralSchema' && each.status === 'True',
      );
      expect(faults).toEqual([]);
    }
  });

  test('applies the defaults that the parser applies', async () => {
    for (const { kind, spec } of KINDS) {
      const { status, body } = await dryRun(kind, goodSpecs[kind]);
      expect(status).toBe(201);
      expect(body['spec']).toEqual(spec.parse(goodSpecs[kind]));
    }
  });
});

describe('a bad object is refused with its field and the remedy:', () => {
  test.each(badObjects)('$kind $field ($message)', async ({ kind, spec, field, message }) => {
    const answer = await dryRun(kind, spec);
    expect(answer.status).not.toBe(201);
    expect(messageOf(answer)).toContain(field);
    expect(messageOf(answer)).toContain(message);
  });

  test.each([
    ['ValidatorSet', `v${'x'.repeat(40)}`, 'has at most 40 lower-case letters'],
    ['ValidatorSet', '4set', 'begins with a letter'],
    ['ValidatorSet', 'a.b', 'lower-case letters, digits and hyphens'],
    ['Tenant', 'x'.repeat(64), 'has at most 63'],
    ['Register', 'a.b', 'lower-case letters, digits and hyphens'],
  ] as const)('%s called %s', async (kind, name, message) => {
    const answer = await dryRun(kind, goodSpecs[kind], name);
    expect(answer.status).toBe(422);
    expect(messageOf(answer)).toContain(message);
  });
});

describe('an edit', () => {
  const edited = (before: object, edit: Readonly<Record<string, unknown>>) => ({ ...before, ...edit });

  async function tryEdit(
    kind: ManagedKind,
    before: object,
    edit: Readonly<Record<string, unknown>>,
  ): Promise<Answer> {
    const name = 'edited';
    await api.request('DELETE', `${pathOf(kind)}/${name}`);
    const created = await api.request('POST', pathOf(kind), objectOf(kind, name, before));
    expect(created.status, messageOf(created)).toBe(201);
    const { resourceVersion } = created.body['metadata'] as { resourceVersion: string };
    const next = objectOf(kind, name, edited(before, edit));
    const updated = { ...next, metadata: { ...next.metadata, resourceVersion } };
    return api.request('PUT', `${pathOf(kind)}/${name}?dryRun=All&fieldValidation=Strict`, updated);
  }

  test.each(badEdits)(
    'is refused: $kind $field ($message)',
    async ({ kind, before, edit, field, message }) => {
      const answer = await tryEdit(kind, before, edit);
      expect(answer.status).toBe(422);
      expect(messageOf(answer)).toContain(field);
      expect(messageOf(answer)).toContain(message);
    },
  );

  test.each(goodEdits)('is accepted: $kind $edit', async ({ kind, before, edit }) => {
    const answer = await tryEdit(kind, before, edit);
    expect(answer.status, messageOf(answer)).toBe(200);
  });
});

describe('parser and API server agree', () => {
  test.each(KINDS)('on good and on mutated specs of a $kind', async ({ kind, spec: schema }) => {
    let refused = 0;
    const specs = goodSpecsOf[kind].chain((spec) =>
      fc.oneof(fc.constant(spec), mutated(spec), mutated(spec)),
    );
    await fc.assert(
      fc.asyncProperty(specs, async (spec) => {
        const answer = await dryRun(kind, spec);
        expect([201, 400, 422]).toContain(answer.status);
        const verdict = schema.safeParse(spec);
        if (!verdict.success) refused += 1;
        const detail = verdict.success ? messageOf(answer) : JSON.stringify(verdict.error.issues);
        expect({ accepted: answer.status === 201, detail }).toEqual({ accepted: verdict.success, detail });
      }),
      { numRuns: runs },
    );
    expect(refused).toBeGreaterThan(runs / 10);
  });
});
