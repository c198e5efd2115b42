import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, signIn, waitOnline } from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';

const blueprintId = 'site-permit-approval';
const draft = `/api/blueprints/${blueprintId}`;

/** The site permit without its credentials, which no service issues. */
function sitePermit(): Record<string, unknown> {
  const path = new URL('../../components/core/blueprint/vectors/site-permit.json', import.meta.url);
  const site = JSON.parse(readFileSync(path, 'utf8'));
  for (const action of site.actions) {
    delete action.credentialRequirements;
    delete action.credentialIssuanceConfig;
    for (const route of action.routes) delete route.outputMapping;
  }
  return site;
}

const publishedAnswer = z.object({
  publicationTxId: z.string(),
  execDefHash: z.string(),
  version: z.number(),
  overridden: z.boolean(),
  sealed: z.boolean(),
  alreadyPublished: z.boolean(),
});

describe('a definition through the gateway', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let designer: Person;
  let stranger: Person;
  let otherId = '';
  let registerId = '';

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-blueprints-'));
    system = await startSystem({ dataDir, deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    const root = (await signIn(api, system.state)).access_token;
    const role = 'Administrator';
    const [acme, other] = [
      await createOrganization(api, root, 'acme'),
      await createOrganization(api, root, 'other'),
    ];
    otherId = other.id;
    designer = await createPerson(api, root, acme, { name: 'dora', role });
    stranger = await createPerson(api, root, other, { name: 'sam', role });
    registerId = await createRegister(
      api,
      designer.token,
      { title: 'Permits', devMode: true },
      designer.wallet,
    );
    await waitOnline(api, designer.token, registerId);
  }, 120_000);
  afterAll(async () => {
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const publish = (status: number, body: object, token = designer.token) =>
    api.expect(status, 'POST', `${draft}/publish`, { token, json: { registerId, ...body } });

  test('is stored, judged, published with an override, and answers helpers', async () => {
    const { token } = designer;
    await api.expect(201, 'POST', '/api/blueprints', { token, json: sitePermit() });
    await api.expect(404, 'GET', draft, { token: stranger.token });
    const judged = await api.expect(200, 'POST', `${draft}/validate`, { token, json: {} });
    expect(judged.body).toMatchObject({ isValid: true, validationResults: [] });

    expect((await publish(409, {})).body).toMatchObject({
      code: 'REHEARSAL_REQUIRED',
      execDefHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const override = { confirm: true, reason: 'A journey' };
    const first = await publish(200, { override });
    const published = publishedAnswer.parse(first.body);
    expect(published).toMatchObject({ version: 1, overridden: true, sealed: true, alreadyPublished: false });
    expect(first.body).toMatchObject({
      warnings: expect.arrayContaining([expect.objectContaining({ code: 'WARN_BP_DEVELOPMENT_REGISTER' })]),
    });
    const again = await publish(200, { override });
    expect(again.body).toMatchObject({ publicationTxId: published.publicationTxId, alreadyPublished: true });

    // The transaction of the publication is its identity.
    await api.expect(200, 'GET', `/api/registers/${registerId}/transactions/${published.publicationTxId}`, {
      token,
    });
    const versions = await api.expect(200, 'GET', `${draft}/versions?registerId=${registerId}`, { token });
    expect(versions.body).toMatchObject([
      { version: 1, publicationTxId: published.publicationTxId, overridden: true },
    ]);
    const hidden = await api.expect(200, 'GET', `${draft}/versions`, { token: stranger.token });
    expect(hidden.body).toEqual([]);
    await api.expect(200, 'GET', `${draft}/definitions/${published.publicationTxId}`, { token });
    await api.expect(404, 'GET', `${draft}/definitions/${published.publicationTxId}`, {
      token: stranger.token,
    });

    const data = { siteReference: 'AB-1234', floorAreaM2: 620, estimatedCostMinor: 1, hazardous: false };
    const json = { blueprintId, actionId: '0', data: { ...data, contact: { email: 'a@example.org' } } };
    const route = await api.expect(200, 'POST', '/api/execution/route', { token, json });
    expect(route.body).toMatchObject({
      nextActionId: '1',
      nextParticipantId: 'safety-board',
      routeId: 'risky',
    });
    const picture = await api.expect(200, 'GET', `${draft}/diagram`, { token });
    expect(Buffer.from(picture.bytes).toString()).toContain('<svg');
  });

  test('is published by nobody but members of the roster, and the refusal is in the audit log', async () => {
    const { token } = stranger;
    await api.expect(201, 'POST', '/api/blueprints', { token, json: sitePermit() });
    const { body } = await publish(403, { override: { confirm: true } }, token);
    expect(body).toMatchObject({ code: 'PUBLISH_ROLE_REQUIRED' });
    await until('the refusal is in the audit log', 15_000, async () => {
      const path = `/api/organizations/${otherId}/audit?eventType=PermissionDenied`;
      const answer = await api.send('GET', path, { token });
      return JSON.stringify(answer.body).includes('blueprint.publish') ? true : undefined;
    });
    const unknown = await api.expect(503, 'POST', `${draft}/publish`, {
      token,
      json: { registerId: 'f'.repeat(32) },
    });
    expect(unknown.body).toMatchObject({ code: 'GOVERNANCE_ROSTER_NOT_SEALED' });
    expect(unknown.headers.get('retry-after')).toBe('5');
  });

  test('becomes a draft again, selected by its publication', async () => {
    const { token } = designer;
    const { body } = await api.expect(200, 'GET', `${draft}/versions?registerId=${registerId}`, { token });
    const [{ publicationTxId } = { publicationTxId: '' }] = z
      .array(z.object({ publicationTxId: z.string() }))
      .parse(body);
    const json = { registerId, blueprintId, publicationTxId };
    const made = await api.expect(201, 'POST', '/api/blueprints/from-published', { token, json });
    const { draftBlueprintId } = z.object({ draftBlueprintId: z.string() }).parse(made.body);
    const read = await api.expect(200, 'GET', `/api/blueprints/${draftBlueprintId}`, { token });
    expect(read.body).toMatchObject({ id: blueprintId, metadata: { 'x-source-version': '1' } });
  });
});
