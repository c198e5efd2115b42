import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { execDefHash, publicationTxId } from '#core/blueprint/hashes.ts';
import { memberDid } from '#core/ledger/did.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { findVersion } from '../publications/store.ts';

type Json = Record<string, unknown>;
const site: Json = JSON.parse(
  readFileSync(new URL('../../../core/blueprint/vectors/site-permit.json', import.meta.url), 'utf8'),
);
const blueprintId = 'site-permit-approval';
const owner = memberDid(testKey(1).walletAddress);
const publishedBy = 'did:platform:w:someone';
const didOf = (fill: number) => memberDid(testKey(fill).walletAddress);

describe('publication of blueprints', () => {
  let register: TestRegister;
  let id: string;
  beforeAll(async () => {
    register = await startTestRegister('publish_blueprints');
    id = await register.createRegister('Permits', { devMode: true });
  });
  afterAll(() => register.stop());

  const publish = (change: Json = {}, token = 'blueprint', at = id, headers = {}) =>
    register.call('POST', `/api/registers/${at}/blueprints/publish`, {
      token,
      headers,
      body: { blueprintId, blueprint: site, publishedBy, callerDid: owner, ...change },
    });
  const versionOf = async (at: string, txId: string) => {
    const { registerNo } = await register.state(at);
    return findVersion(register.database.read, { registerNo, blueprintId }, { txId });
  };

  it('submits the transaction of the publication, signed by the installation', async () => {
    const txId = publicationTxId(id, blueprintId, site);
    const answer = await publish();
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        blueprintId,
        registerId: id,
        txId,
        publicationTxId: txId,
        execDefHash: execDefHash(site),
        structuralHash: expect.stringMatching(/^[0-9a-f]{64}$/),
        version: '1.0',
        changeType: 'structural',
        submitted: true,
        alreadyPublished: false,
      },
    ]);
    expect(await versionOf(id, txId)).toBeUndefined();
    await register.seal(id);
    expect(await versionOf(id, txId)).toMatchObject({ ordinal: 1, major: 1, minor: 0, publishedBy });
    const { body } = await register.call('GET', `/api/registers/${id}/transactions/${txId}`, {
      token: 'admin',
    });
    expect(body).toMatchObject({
      transactionType: 'Control',
      senderAddress: testKey(200).walletAddress,
      metadata: { Type: 'Control', transactionType: 'BlueprintPublish', publishedBy },
    });
    const payload = JSON.parse(Buffer.from(body.payload, 'base64').toString());
    expect(payload).toMatchObject({ version: 1, publishedBy, definition: { title: site['title'] } });
    expect(payload.definition.version).toBeUndefined();
  });

  it('is one publication however often it is requested, and a separate one on each register', async () => {
    const before = await register.state(id);
    const again = await publish({
      blueprint: undefined,
      blueprintJson: `${' '.repeat(600_000)}${JSON.stringify({ ...site, version: 7 })}`,
    });
    expect([again.status, again.body]).toMatchObject([
      200,
      { submitted: false, alreadyPublished: true, version: '1.0' },
    ]);
    expect(register.validators.pooled(id)).toEqual([]);
    expect((await register.state(id)).height).toBe(before.height);
    const other = await register.createRegister('Elsewhere');
    const elsewhere = await publish({}, 'blueprint', other);
    expect(elsewhere.body).toMatchObject({ submitted: true, version: '1.0' });
    expect(elsewhere.body.txId).not.toBe(again.body.txId);
  });

  it('answers a repetition with the id of the first, and two concurrent requests with one publication', async () => {
    const blueprint = { ...site, title: 'At the same time' };
    const key = { 'idempotency-key': 'publish-1' };
    const first = await publish({ blueprint }, 'blueprint', id, key);
    const repeated = await publish({ blueprint }, 'blueprint', id, key);
    expect(repeated.body).toEqual(first.body);
    const asked = register.validators.submittedTo.length;
    register.validators.refuseNext({ status: 409, body: { code: 'TX_CONFLICT' }, retryAfterSeconds: 0 });
    const second = publish({ blueprint });
    await waitFor(() => register.validators.submittedTo.length > asked, { what: 'the second submission' });
    await register.seal(id, 1);
    expect((await second).body).toMatchObject({ txId: first.body.txId, alreadyPublished: true });
  });

  it('numbers publications of a publisher with a long non-ASCII name', async () => {
    const long = `did:web:${'\u754c'.repeat(200)}`;
    const { body } = await publish({ blueprint: { ...site, title: 'By a long name' }, publishedBy: long });
    await register.seal(id);
    expect(await versionOf(id, body.txId)).toMatchObject({ publishedBy: long, minor: 2 });
  });

  it('requires a role that may publish of the named member', async () => {
    const auditor = testKey(2);
    const designer = testKey(3);
    register.wallets.own('admin', auditor);
    register.wallets.own('admin', designer);
    const at = await register.createRegister('Roles', {
      owners: [{ walletAddress: testKey(1).walletAddress }],
      additionalAdmins: [
        { walletAddress: auditor.walletAddress, role: 'Auditor' },
        { walletAddress: designer.walletAddress, role: 'Designer' },
      ],
    });
    for (const callerDid of [didOf(2), didOf(4), `${owner}x`, 'did:platform:w:']) {
      const refused = await publish({ callerDid }, 'blueprint', at);
      expect([callerDid, refused.status, refused.body.code]).toEqual([
        callerDid,
        403,
        'PUBLISH_ROLE_REQUIRED',
      ]);
    }
    expect((await publish({ callerDid: didOf(3) }, 'blueprint', at)).body).toMatchObject({ submitted: true });
  });

  it.each([
    ['nobody', undefined, 401, 'UNAUTHORIZED'],
    ['its owner', 'admin', 403, 'FORBIDDEN'],
    ['a system administrator', 'system', 403, 'FORBIDDEN'],
  ])('is refused for %s', async (_who, token, status, code) => {
    const body = { blueprintId, blueprint: site, publishedBy, callerDid: owner };
    const refused = await register.call('POST', `/api/registers/${id}/blueprints/publish`, {
      ...(token !== undefined && { token }),
      body,
    });
    expect([refused.status, refused.body.code]).toEqual([status, code]);
  });

  it.each<[string, Json, number, string]>([
    ['both forms', { blueprintJson: '{}' }, 400, 'INVALID_REQUEST'],
    ['no definition', { blueprint: undefined }, 400, 'INVALID_REQUEST'],
    ['no caller', { callerDid: undefined }, 400, 'INVALID_REQUEST'],
    ['a publisher that is no DID', { publishedBy: 'me' }, 400, 'INVALID_REQUEST'],
    ['a member twice', { blueprint: undefined, blueprintJson: '{"id":1,"id":2}' }, 400, 'VAL_STRUCT_012'],
    ['text', { blueprint: undefined, blueprintJson: '"text"' }, 422, 'VAL_SCHEMA_001'],
    ['another id', { blueprintId: 'another' }, 422, 'VAL_SCHEMA_001'],
    ['an unknown member', { blueprint: { ...site, colour: 'red' } }, 422, 'VAL_SCHEMA_001'],
    ['no participants', { blueprint: { ...site, participants: [] } }, 422, 'VAL_SCHEMA_001'],
    ['half a MiB', { blueprint: { ...site, 'x-long': '€'.repeat(180_000) } }, 413, 'TRANSACTION_TOO_LARGE'],
    ['another behaviour', { execDefHash: '0'.repeat(64) }, 422, 'EXEC_DEF_HASH_MISMATCH'],
  ])('refuses %s', async (_what, change, status, code) => {
    const refused = await publish(change);
    expect([refused.status, refused.body.code]).toEqual([status, code]);
  });

  it('refuses unknown registers, and registers whose roster is not sealed yet', async () => {
    expect((await publish({}, 'blueprint', '0'.repeat(32))).status).toBe(404);
    const begun = await register.call('POST', '/api/registers/initiate', {
      token: 'admin',
      body: { title: 'Young', owners: [{ walletAddress: testKey(1).walletAddress }] },
    });
    const { registerId, nonce } = begun.body;
    await register.call('POST', '/api/registers/finalize', {
      token: 'admin',
      body: { registerId, nonce, autoAttest: true },
    });
    const early = await publish({}, 'blueprint', registerId);
    expect([early.status, early.body.code, early.headers['retry-after']]).toEqual([
      503,
      'GOVERNANCE_ROSTER_NOT_SEALED',
      '5',
    ]);
  });
});
