import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { execDefHash, publicationTxId } from '#core/blueprint/hashes.ts';
import { memberDid } from '#core/ledger/did.ts';
import { refusal } from '../../errors.ts';
import { firstSchema, organizationId, sitePermit, startWorld, type World } from '../../testing/world.ts';

const base = '/api/blueprints';
const one = `${base}/site-permit-approval`;
const registerId = '0'.repeat(31).concat('1');
const confirmed = { confirm: true, reason: 'Only a trial' };
const site = sitePermit();
const hash = execDefHash(site);

describe('publishing', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld('blueprint_publishing');
    world.wallets.set('admin', ['w-owner']);
    await world.call('POST', base, { body: site });
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    for (const name of ['getRoster', 'publish', 'isLedgerAway'] as const) delete world.answers[name];
    world.refused.length = 0;
  });

  const publish = (body: object, token = 'admin', at = one) =>
    world.call('POST', `${at}/publish`, { token, body });
  const rows = async () => ({
    submitted: await world.db.read.selectFrom('submitted_publications').selectAll().execute(),
    overrides: await world.db.read.selectFrom('publish_overrides').selectAll().execute(),
  });
  const passes = async (execDefHashOf: string) => {
    await world.db.transact((tx) =>
      tx
        .insertInto('rehearsal_passes')
        .values({
          id: crypto.randomUUID(),
          organization_id: organizationId,
          blueprint_id: 'site-permit-approval',
          exec_def_hash: execDefHashOf,
          rehearsal_id: 'r',
          passed_at: new Date(),
          passed_by: 'ann',
        })
        .execute(),
    );
  };

  it('needs a rehearsal or an override, which is recorded', async () => {
    world.addRegister(registerId);
    const refused = await publish({ registerId });
    expect([refused.status, refused.body]).toEqual([
      409,
      expect.objectContaining({ code: 'REHEARSAL_REQUIRED', execDefHash: hash, message: expect.any(String) }),
    ]);
    expect((await publish({ registerId, override: { confirm: false } })).status).toBe(409);
    expect(await rows()).toEqual({ submitted: [], overrides: [] });

    const { status, body } = await publish({ registerId, override: confirmed });
    const txId = publicationTxId(registerId, 'site-permit-approval', site);
    expect([status, body]).toEqual([
      200,
      {
        blueprintId: 'site-permit-approval',
        version: 1,
        registerId,
        publishedAt: expect.any(String),
        overridden: true,
        publicationTxId: txId,
        execDefHash: hash,
        sealed: true,
        alreadyPublished: false,
        warnings: [
          expect.objectContaining({ code: 'WARN_BP_CYCLE', location: '/actions/1/rejectionConfig' }),
          expect.objectContaining({ code: 'WARN_BP_CYCLE', location: '/actions/2/rejectionConfig' }),
        ],
      },
    ]);
    expect((await rows()).overrides).toMatchObject([
      {
        overridden_by_platform_user_id: 'ann',
        register_id: registerId,
        exec_def_hash: hash,
        publication_tx_id: txId,
        reason: 'Only a trial',
      },
    ]);
    expect(await world.telemetry.registry.metrics()).toContain(
      'chancery_designer_publish_override_total{reason_provided="true"} 1',
    );
    const drafts = await world.call('GET', `${base}?status=Published`);
    expect(drafts.body.items).toMatchObject([{ id: 'site-permit-approval', latestPublicationTxId: txId }]);
  });

  it('keeps the rows of overrides', async () => {
    const remove = world.db.transact((tx) => tx.deleteFrom('publish_overrides').execute());
    await expect(remove).rejects.toThrow(/never changed/);
  });

  it('publishes again: the same is one publication, texts need no rehearsal, behaviour does', async () => {
    await passes(hash);
    const same = await publish({ registerId });
    expect(same.body).toMatchObject({ alreadyPublished: true, overridden: false, version: 1 });
    const put = (body: object) => world.call('PUT', one, { body });
    await put({ ...site, title: 'Temporary site permit (2026)' });
    const titled = await publish({ registerId, override: confirmed });
    expect(titled.body).toMatchObject({
      version: 2,
      overridden: false,
      alreadyPublished: false,
      execDefHash: hash,
    });
    expect(titled.body.publicationTxId).not.toBe(same.body.publicationTxId);
    const shown = sitePermit();
    firstSchema(shown).properties['floorAreaM2'] = {
      ...firstSchema(shown).properties['floorAreaM2'],
      'x-width': 'half',
    };
    await put(shown);
    expect((await publish({ registerId })).body).toMatchObject({ version: 3, overridden: false });
    const other = sitePermit();
    firstSchema(other).required.push('plans');
    await put(other);
    const behaviour = await publish({ registerId });
    expect([behaviour.status, behaviour.body.execDefHash]).toEqual([409, execDefHash(other)]);
    expect((await rows()).overrides).toHaveLength(1);
    await put(site);

    const versions = await world.call('GET', `${one}/versions?registerId=${registerId}`, { token: 'user' });
    expect(versions.body).toMatchObject([
      { version: 3, overridden: false, openInstances: 0 },
      { version: 2, overridden: false },
      { version: 1, overridden: true, publishedBy: memberDid('w-owner'), registerId },
    ]);
    expect((await world.call('GET', `${one}/versions/2`)).body.publicationTxId).toBe(
      titled.body.publicationTxId,
    );
    expect((await world.call('GET', `${one}/versions/9`)).status).toBe(404);
    // Another organisation reads neither the register nor its publications.
    expect((await world.call('GET', `${one}/versions`, { token: 'stranger' })).body).toEqual([]);
    const path = `${one}/definitions/${titled.body.publicationTxId}`;
    const sealed = await world.call('GET', path, { token: 'user' });
    expect([sealed.status, sealed.body.title, sealed.headers['cache-control']]).toEqual([
      200,
      'Temporary site permit (2026)',
      'private, max-age=31536000, immutable',
    ]);
    expect((await world.call('GET', path, { token: 'stranger' })).status).toBe(404);
    expect((await world.call('GET', `${one}/definitions/nonsense`)).status).toBe(404);
  });

  it('is for members of the roster; a refusal is reported and stores nothing', async () => {
    const before = await rows();
    const at = 'a'.repeat(32);
    world.addRegister(at, {
      roster: [
        { subject: `${memberDid('w-owner')}x`, role: 'Owner' },
        { subject: memberDid('w-owner'), role: 'Auditor' },
      ],
    });
    const { status, body } = await publish({ registerId: at, override: confirmed });
    expect([status, body.code]).toEqual([403, 'PUBLISH_ROLE_REQUIRED']);
    expect(world.refused).toEqual([
      {
        organizationId,
        action: 'blueprint.publish',
        reason: 'PUBLISH_ROLE_REQUIRED',
        resourceType: 'register',
        resourceId: at,
        platformUserId: 'ann',
      },
    ]);
    expect(await rows()).toEqual(before);
    expect(world.registers.get(at)?.publications).toEqual([]);
    expect((await publish({ registerId: at }, 'designer')).status).toBe(403);
  });

  it('acts for the organisation through its wallet', async () => {
    const at = 'b'.repeat(32);
    world.wallets.set(organizationId, ['w-org', 'w-org-derived']);
    world.addRegister(at, {
      roster: [{ subject: memberDid('w-org-derived'), role: 'Designer' }],
      devMode: true,
    });
    const { status, body } = await publish({ registerId: at });
    expect(status).toBe(200);
    expect(body.warnings).toContainEqual(
      expect.objectContaining({ severity: 'Warning', code: 'WARN_BP_DEVELOPMENT_REGISTER' }),
    );
  });

  it('answers 503 for a roster that is not sealed, not known or not readable, and stores nothing', async () => {
    const before = await rows();
    const unknown = await publish({ registerId: 'c'.repeat(32), override: confirmed });
    expect([unknown.status, unknown.body.code, unknown.headers['retry-after']]).toEqual([
      503,
      'GOVERNANCE_ROSTER_NOT_SEALED',
      '5',
    ]);
    world.answers.getRoster = async () => {
      throw refusal('GOVERNANCE_ROSTER_UNAVAILABLE');
    };
    const away = await publish({ registerId, override: confirmed });
    expect([away.status, away.body.code]).toEqual([503, 'GOVERNANCE_ROSTER_UNAVAILABLE']);
    delete world.answers.getRoster;
    world.answers.isLedgerAway = true;
    expect((await publish({ registerId, override: confirmed })).body.code).toBe('REGISTER_UNAVAILABLE');
    delete world.answers.isLedgerAway;
    world.answers.publish = async () => {
      throw refusal('REGISTER_REFUSED', { details: { reason: 'VAL_X' } });
    };
    const refused = await publish({ registerId, override: confirmed });
    expect([refused.status, refused.body.code, refused.body.reason]).toEqual([
      502,
      'REGISTER_REFUSED',
      'VAL_X',
    ]);
    expect(await rows()).toEqual(before);
  });

  it('answers that a publication is not sealed when its docket does not come', async () => {
    const at = 'd'.repeat(32);
    world.addRegister(at, { isSealing: false });
    const { status, body } = await publish({ registerId: at });
    expect([status, body.sealed, body.version]).toEqual([200, false, 1]);
  });

  it('lists every fault of a definition, and asks nobody to override them', async () => {
    const { participants, ...rest } = sitePermit();
    await world.call('POST', base, { body: { ...rest, id: 'faulty', participants: [], unknown: 1 } });
    const { status, body } = await publish({ registerId, override: confirmed }, 'admin', `${base}/faulty`);
    expect([status, body.code, body.isValid]).toEqual([400, body.errors[0].code, false]);
    expect(body.errors).toContainEqual(
      expect.objectContaining({ code: 'VAL_BP_002', field: '/participants' }),
    );
    expect(body.errors).toContainEqual(
      expect.objectContaining({ code: 'VAL_BP_UNKNOWN_FIELD', field: '/unknown' }),
    );
    const judged = await world.call('POST', `${base}/faulty/validate`, { body: {} });
    expect(judged.body).toMatchObject({ isValid: false, blueprintId: 'faulty' });
    expect(judged.body.validationResults).toContainEqual(
      expect.objectContaining({ code: 'VAL_BP_UNKNOWN_FIELD', location: '/unknown' }),
    );
    const dry = await world.call('POST', `${base}/faulty/validate`, { body: { ...site, id: 'faulty' } });
    expect(dry.body).toMatchObject({ isValid: true, validationResults: [] });
  });

  it.each([
    ['VAL_BP_005', '/actions/1/sender', { sender: 'nobody' }],
    [
      'VAL_BP_009',
      '/actions/1/routes/0/condition',
      { routes: [{ id: 'r', nextActionIds: [2], condition: { log: 1 } }] },
    ],
    ['VAL_BP_007', '/actions/1/routes/0', { routes: [{ id: 'r', nextActionIds: [9], isDefault: true }] }],
    [
      'VAL_BP_017',
      '/actions/1/disclosures/0',
      { disclosures: [{ participantAddress: 'planning-office', dataPointers: ['/conditions/0'] }] },
    ],
    [
      'VAL_BP_020',
      '/actions/1/routes/0/condition',
      {
        routes: [
          { id: 'r', nextActionIds: [2], condition: { '==': [{ var: 'estimatedCostMinor' }, 1] } },
          { id: 's', nextActionIds: [2], isDefault: true },
        ],
      },
    ],
  ])('names %s and its place', async (code, location, change) => {
    const spoilt = sitePermit();
    Object.assign(spoilt.actions[1] ?? {}, change);
    const { body } = await world.call('POST', `${one}/validate`, { body: spoilt });
    const found = body.validationResults.filter((each: { code: string }) => each.code === code);
    expect(found).toMatchObject([{ code, location: expect.stringContaining(location) }]);
    expect(body.isValid).toBe(false);
  });

  it('refuses a starting sender with a wallet, and credentials while nobody issues them (422)', async () => {
    const { participants } = site as { participants?: object[] };
    const bound = participants?.map((each, index) => (index === 0 ? { ...each, walletAddress: 'w1' } : each));
    const { body } = await world.call('POST', `${one}/validate`, { body: { ...site, participants: bound } });
    expect(body.validationResults).toContainEqual(
      expect.objectContaining({ code: 'VAL_BP_010', location: '/actions/0/sender' }),
    );
    const issuing = sitePermit();
    const requirement = { type: 'https://vc.example/identity/v1', format: 'sd-jwt-vc' };
    Object.assign(issuing.actions[0] ?? {}, { credentialRequirements: [requirement] });
    await world.call('POST', base, { body: { ...issuing, id: 'issuing' } });
    const refused = await publish({ registerId, override: confirmed }, 'admin', `${base}/issuing`);
    expect([refused.status, refused.body.code]).toEqual([422, 'VAL_BP_CRED_UNAVAILABLE']);
  });

  it('refuses bodies with unknown members, and callers without the right', async () => {
    expect((await publish({ registerId, override: confirmed, force: true })).status).toBe(400);
    expect((await publish({ registerId: 'x' })).status).toBe(400);
    expect((await publish({ registerId }, 'user')).status).toBe(403);
    expect((await publish({ registerId }, 'service')).status).toBe(403);
    expect((await publish({ registerId }, 'stranger')).status).toBe(404);
  });

  it('leaves a blueprint on a register to the organisation that published it first', async () => {
    await world.call('POST', base, { token: 'stranger', body: site });
    world.wallets.set('stranger', ['w-owner']);
    const { status, body } = await publish({ registerId, override: confirmed }, 'stranger');
    expect([status, body.code]).toEqual([409, 'BLUEPRINT_ID_TAKEN']);
  });

  it('makes drafts of publications, which are published under the same id', async () => {
    const [{ publicationTxId: source }] = (
      await world.call('GET', `${one}/versions?registerId=${registerId}`)
    ).body;
    const body = { registerId, blueprintId: 'site-permit-approval', publicationTxId: source };
    const made = await world.call('POST', `${base}/from-published`, { body });
    expect([made.status, made.body]).toEqual([
      201,
      {
        draftBlueprintId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        sourcePublicationTxId: source,
        registerId,
      },
    ]);
    const path = `${base}/${made.body.draftBlueprintId}`;
    const draft = await world.call('GET', path);
    expect(draft.body).toMatchObject({
      id: 'site-permit-approval',
      metadata: {
        'x-source-register': registerId,
        'x-source-blueprint-id': 'site-permit-approval',
        'x-source-version': '3',
      },
    });
    const again = await publish({ registerId }, 'admin', path);
    expect(again.body).toMatchObject({ publicationTxId: source, alreadyPublished: true });
    const other = await world.call('POST', `${base}/from-published`, {
      body: { ...body, publicationTxId: 'e'.repeat(64) },
    });
    expect([other.status, other.body.code]).toEqual([404, 'PUBLICATION_NOT_FOUND']);
    const elsewhere = await world.call('POST', `${base}/from-published`, {
      body: { ...body, registerId: 'c'.repeat(32) },
    });
    expect(elsewhere.body.code).toBe('GOVERNANCE_ROSTER_NOT_SEALED');
    const outsider = await world.call('POST', `${base}/from-published`, { token: 'designer', body });
    expect(outsider.status).toBe(403);
    expect(world.refused).toMatchObject([{ action: 'blueprint.amend', platformUserId: 'dan' }]);
  });
});
