import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { findPublication, type Publication } from '#core/blueprint/publication.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { ExportVerifier } from '#core/ledger/export/verify-export.ts';
import type { Call } from '../harness/api.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { sitePermit, workflows } from '../harness/workflow.ts';

const here = installation();
const blueprintId = 'site-permit-approval';

const publication = z.looseObject({
  publicationTxId: z.string(),
  version: z.number(),
  execDefHash: z.string(),
  alreadyPublished: z.boolean(),
});
const amended = z.object({
  draftBlueprintId: z.string(),
  sourcePublicationTxId: z.string(),
  registerId: z.string(),
});
const versions = z.array(
  z.looseObject({
    blueprintId: z.string(),
    version: z.number(),
    publicationTxId: z.string(),
    execDefHash: z.string(),
    registerId: z.string(),
  }),
);

describe('one definition on two registers, through the gateway', () => {
  let designer: Person;
  let first = '';
  let second = '';

  beforeAll(async () => {
    const organization = await createOrganization(here.api, here.token(), 'planning');
    const person = { name: 'designer', role: 'Administrator' } as const;
    designer = await createPerson(here.api, here.token(), organization, person);
    const make = async (title: string) => {
      const { token, wallet } = designer;
      const id = await createRegister(here.api, token, { title, devMode: false }, wallet);
      await waitOnline(here.api, token, id);
      return id;
    };
    [first, second] = [await make('North'), await make('South')];
  });

  const send = async (status: number, method: string, path: string, call: Call = {}) =>
    here.api.expect(status, method, path, { token: designer.token, ...call });
  const publish = async (draft: string, registerId: string) => {
    const json = { registerId, override: { confirm: true, reason: 'A journey from outside' } };
    const { body } = await send(200, 'POST', `/api/blueprints/${draft}/publish`, { json });
    return publication.parse(body);
  };
  const versionsOn = async (registerId: string) => {
    const path = `/api/blueprints/${blueprintId}/versions?registerId=${registerId}`;
    const found = versions.parse((await send(200, 'GET', path)).body);
    return found.toSorted((one, other) => one.version - other.version);
  };
  /** Publishes a publication of the first register on the second one, by a draft of it. */
  async function carryOver(publicationTxId: string) {
    const json = { registerId: first, blueprintId, publicationTxId };
    const draft = amended.parse((await send(201, 'POST', '/api/blueprints/from-published', { json })).body);
    expect(draft).toMatchObject({ sourcePublicationTxId: publicationTxId, registerId: first });
    const path = `/api/blueprints/${draft.draftBlueprintId}`;
    expect((await send(200, 'GET', path)).body).toMatchObject({
      id: blueprintId,
      metadata: { 'x-source-register': first, 'x-source-blueprint-id': blueprintId },
    });
    const published = await publish(draft.draftBlueprintId, second);
    await send(204, 'DELETE', path);
    return { ...published, draftBlueprintId: draft.draftBlueprintId };
  }
  /** The publications in an export, which verifies, in the order of the ledger. */
  async function readExport(registerId: string): Promise<readonly Publication[]> {
    const { bytes } = await send(200, 'GET', `/api/registers/${registerId}/export`);
    const found: Publication[] = [];
    const reader = new ExportVerifier(createVerifier(nodeEd25519()), ({ record, payload }) => {
      const publishing = findPublication(record, payload);
      if (publishing !== undefined) found.push(publishing);
    });
    const lines = Buffer.from(bytes).toString().trimEnd().split('\n');
    for (const line of lines) reader.take(Buffer.from(line));
    expect(reader.finish()).toMatchObject({ registerId });
    return found;
  }

  test('has two publications with the same ordinals, and a draft of each keeps the blueprint', async () => {
    const wallets = {
      'planning-office': designer.wallet.walletAddress,
      'safety-board': designer.wallet.walletAddress,
    };
    await workflows(here.api).publish(designer, sitePermit(wallets), first);
    const path = `/api/blueprints/${blueprintId}`;
    const { headers, body } = await send(200, 'GET', path);
    const draft = z
      .looseObject({
        actions: z.array(z.looseObject({ requiredPriorActions: z.array(z.number()).optional() })),
      })
      .parse(body);
    const { version, organizationId, createdAt, updatedAt, ...definition } = draft;
    expect([version, organizationId, createdAt, updatedAt].includes(undefined)).toBe(false);
    const [, review] = definition.actions;
    Object.assign(review ?? {}, { requiredPriorActions: [] });
    const ifMatch = { 'if-match': headers.get('etag') ?? '' };
    await send(200, 'PUT', path, { json: definition, headers: ifMatch });
    await publish(blueprintId, first);
    const own = await versionsOn(first);
    expect(own.map((each) => each.version)).toEqual([1, 2]);

    const [one, two] = [
      await carryOver(own[0]?.publicationTxId ?? ''),
      await carryOver(own[1]?.publicationTxId ?? ''),
    ];
    expect([one, two].map((each) => each.alreadyPublished)).toEqual([false, false]);
    const other = await versionsOn(second);
    expect(other.map((each) => [each.blueprintId, each.version, each.execDefHash])).toEqual(
      own.map((each) => [each.blueprintId, each.version, each.execDefHash]),
    );
    const ids = [...own, ...other].map((each) => each.publicationTxId);
    expect(new Set(ids).size).toBe(4);
    expect([one.publicationTxId, two.publicationTxId]).toEqual(ids.slice(2));
    expect(one.draftBlueprintId).not.toBe(two.draftBlueprintId);
  }, 60_000);

  test('has in the exports of the registers the ordinals that the service shows', async () => {
    for (const registerId of [first, second]) {
      const shown = await versionsOn(registerId);
      const sealed = await readExport(registerId);
      expect(sealed.map((each, index) => [each.txId, each.execDefHash, index + 1])).toEqual(
        shown.map((each) => [each.publicationTxId, each.execDefHash, each.version]),
      );
    }
  });
});
