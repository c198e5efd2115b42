import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256 } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import type { Caller } from '#core/identity/claims.ts';
import { DEFAULT_ADMIN_ID } from '#core/identity/well-known.ts';
import type { App } from '#kit/http/http.ts';
import { walletHandlers } from '../signing/rpc.ts';
import {
  administrator,
  openFixture,
  person,
  type Replica,
  type ReplicaOptions,
  routesFor,
  rpcContext,
} from '../testing/fixture.ts';

const ATTESTATION = 'platform:register-attestation';
/** Contexts whose keys sign only through their own routes. */
const DEDICATED = [
  'platform:blueprint-publish',
  'platform:credential-holder-binding',
  'platform:haip-issuer-signing',
  'platform:tenant-ca-signing',
  'platform:citizen-holder',
  'platform:citizen-status-signing',
  'platform:status-list-signing',
];
const DAY_MS = 24 * 3_600_000;

describe('grants and organisation wallets', () => {
  const callers = new Map<string, Caller>();
  let replica: Replica & ReplicaOptions;
  let app: App;

  beforeAll(async () => {
    replica = await openFixture('wallet_grants');
    app = routesFor(replica, callers);
  });

  afterAll(async () => {
    await app.close();
    await replica.close();
  });

  function sign(who: string, id: string, change: object = {}) {
    const body = { data: 'AAAA', algorithm: 'ED25519', derivationPath: ATTESTATION, ...change };
    return call(who, 'POST', `/api/wallets/${id}/sign`, body);
  }

  async function call(who: string, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) {
    const options = { method, url, headers: { authorization: who } };
    const response = await app.inject(payload === undefined ? options : { ...options, payload });
    return { status: response.statusCode, body: response.body === '' ? undefined : response.json() };
  }

  /** An organisation with its administrator `creator` and its wallet. */
  async function organization(name: string) {
    const organizationId = randomUUID();
    const creator = administrator(organizationId);
    callers.set(name, creator);
    const body = { title: 'Org', keyType: 'ED25519', organizationId };
    const { status, body: wallet } = await call(name, 'POST', '/api/wallets', body);
    expect(status).toBe(201);
    return { organizationId, creator, wallet, body };
  }

  test('the creator gets the 90-day grant; one wallet per organisation', async () => {
    const { creator, wallet, body, organizationId } = await organization('creator');
    expect(wallet).toMatchObject({ owner: organizationId, ownerKind: 'Organization', organizationId });
    const { body: grants } = await call('creator', 'GET', `/api/v1/wallets/${wallet.walletAddress}/access`);
    expect(grants.items).toMatchObject([
      {
        subject: creator.platformUserId,
        accessRight: 'ReadWrite',
        reason: 'organisation wallet creator',
        allowedDerivationContexts: [ATTESTATION],
        expiresAt: new Date(replica.clock.nowMs() + 90 * DAY_MS).toISOString(),
        isActive: true,
      },
    ]);
    expect(await call('creator', 'POST', '/api/wallets', body)).toMatchObject({
      status: 409,
      body: { code: 'ORGANIZATION_WALLET_EXISTS' },
    });
    expect((await sign('creator', wallet.id)).status).toBe(200);
    expect((await call('creator', 'GET', '/api/wallets')).body.totalCount).toBe(1);
  });

  test('the default administrator of an installation can be granted access by id', async () => {
    callers.set('giver', person());
    const { body: wallet } = await call('giver', 'POST', '/api/wallets', {
      title: 'Own',
      keyType: 'ED25519',
    });
    const body = { subject: DEFAULT_ADMIN_ID, accessRight: 'ReadOnly' };
    const granted = await call('giver', 'POST', `/api/wallets/${wallet.id}/access`, body);
    expect(granted).toMatchObject({ status: 201, body: { subject: DEFAULT_ADMIN_ID } });
  });

  test('expired, unscoped, demoted, other context, no context, hybrid, other organisation: 403 and an audit line each', async () => {
    const { creator, wallet, organizationId } = await organization('a19');
    expect((await sign('a19', wallet.id)).status).toBe(200);
    const refusals = async (who: string, change: object, reason: string) => {
      const before = replica.runtime.lines.length;
      const earlier = replica.refused.length;
      expect(await sign(who, wallet.id, change)).toMatchObject({
        status: 403,
        body: { code: 'WALLET_ACCESS_DENIED' },
      });
      const lines = replica.runtime.lines
        .slice(before)
        .filter((line) => line['securityAudit'] === 'wallet.sign');
      expect(lines).toMatchObject([
        { reason, walletAddress: wallet.walletAddress, userId: creator.platformUserId },
      ]);
      // the refusal is reported to the organisation that owns the wallet, independent of the caller's organisation
      expect(replica.refused.slice(earlier)).toEqual([
        {
          organizationId,
          action: 'wallet.sign',
          reason,
          resourceType: 'wallet',
          resourceId: wallet.walletAddress,
          platformUserId: creator.platformUserId,
        },
      ]);
    };
    await refusals('a19', { derivationPath: 'platform:blueprint-publish' }, 'CONTEXT_NOT_GRANTED');
    await refusals('a19', { derivationPath: undefined }, 'CONTEXT_NOT_GRANTED');
    await refusals('a19', { derivationPath: "m/44'/0'/0'/0'/100'" }, 'CONTEXT_NOT_GRANTED');
    await refusals('a19', { hybridMode: true }, 'HYBRID_MODE_REFUSED');
    callers.set('a19-demoted', { ...creator, roles: ['User'] });
    await refusals('a19-demoted', {}, 'ADMINISTRATOR_REQUIRED');
    callers.set('a19-elsewhere', { ...creator, organizationId: randomUUID() });
    await refusals('a19-elsewhere', {}, 'ORGANIZATION_MISMATCH');
    await replica.db.pool.query(`UPDATE wallet_grants SET allowed_contexts = '{}' WHERE wallet_id = $1`, [
      wallet.id,
    ]);
    await refusals('a19', {}, 'CONTEXT_NOT_GRANTED');
    await replica.db.pool.query('UPDATE wallet_grants SET allowed_contexts = $2 WHERE wallet_id = $1', [
      wallet.id,
      [ATTESTATION],
    ]);
    replica.clock.advance(90 * DAY_MS);
    await refusals('a19', {}, 'GRANT_MISSING');
  });

  test('a caller who does not govern a wallet cannot manage its grants; auditors see the refusal', async () => {
    const { wallet, organizationId: owning } = await organization('governed');
    const stranger = administrator(randomUUID());
    callers.set('stranger', stranger);
    callers.set('nowhere', person());
    const owner = person();
    callers.set('owner', owner);
    const { body: own } = await call('owner', 'POST', '/api/wallets', { title: 'Own', keyType: 'ED25519' });
    const earlier = replica.refused.length;
    const denied = { status: 403, body: { code: 'WALLET_ACCESS_DENIED' } };
    for (const id of [wallet.id, own.id]) {
      expect(await call('stranger', 'GET', `/api/wallets/${id}/access`)).toMatchObject(denied);
    }
    const check = `/api/wallets/${wallet.id}/access/${owner.platformUserId}/check?right=ReadOnly`;
    expect(await call('stranger', 'GET', check)).toMatchObject(denied);
    expect((await call('owner', 'GET', check)).status).toBe(200);
    const reason = 'NEITHER_OWNER_NOR_ADMINISTRATOR';
    const { platformUserId, organizationId } = stranger;
    const access = { action: 'wallet.access', reason, platformUserId };
    const ofWallet = { ...access, organizationId: owning };
    expect(replica.refused.slice(earlier)).toEqual([
      { ...ofWallet, resourceType: 'wallet', resourceId: wallet.walletAddress },
      { ...access, organizationId, resourceType: 'wallet', resourceId: own.walletAddress },
      { ...ofWallet, resourceType: 'wallet', resourceId: wallet.walletAddress },
    ]);
    // without an organisation in the token there is no audit log to report to
    expect(await call('nowhere', 'GET', `/api/wallets/${own.id}/access`)).toMatchObject(denied);
    expect(replica.refused).toHaveLength(earlier + 3);
  });

  test('an Administrator grants only with contexts and never Owner; a new grant replaces an expired one', async () => {
    const { organizationId, creator, wallet } = await organization('granting');
    const colleague = administrator(organizationId);
    callers.set('colleague', colleague);
    const url = `/api/v1/wallets/${wallet.walletAddress}/access`;
    const grant = {
      subject: colleague.platformUserId,
      accessRight: 'ReadWrite',
      reason: 'holiday',
      allowedDerivationContexts: [ATTESTATION],
    };
    const refused = [
      [{ accessRight: 'Owner' }, 403, 'OWNER_NOT_GRANTABLE'],
      [{ allowedDerivationContexts: [] }, 403, 'SCOPE_REQUIRED'],
      [{ allowedDerivationContexts: ['platform:nothing'] }, 400, 'UNKNOWN_DERIVATION_CONTEXT'],
      [{ allowedDerivationContexts: ["m/44'/0'"] }, 400, 'UNKNOWN_DERIVATION_CONTEXT'],
      [{ allowedDerivationContexts: ["m/44'/0'/0'/0'/106'"] }, 400, 'UNKNOWN_DERIVATION_CONTEXT'],
      [{ allowedDerivationContexts: ['platform:docket-signing'] }, 403, 'DERIVATION_CONTEXT_RESERVED'],
      ...DEDICATED.map(
        (name) =>
          [{ allowedDerivationContexts: [ATTESTATION, name] }, 403, 'DERIVATION_CONTEXT_RESERVED'] as const,
      ),
      [{ expiresAt: new Date(replica.clock.nowMs()).toISOString() }, 400, 'GRANT_EXPIRY_PAST'],
      [{ expiresAt: 'tomorrow' }, 400, 'INVALID_REQUEST'],
      [{ subject: 'me' }, 400, 'INVALID_REQUEST'],
    ] as const;
    for (const [change, status, code] of refused) {
      expect(await call('granting', 'POST', url, { ...grant, ...change })).toMatchObject({
        status,
        body: { code },
      });
    }
    expect((await sign('colleague', wallet.id)).status).toBe(403);
    const expiresAt = new Date(replica.clock.nowMs() + DAY_MS).toISOString();
    const created = await call('granting', 'POST', url, { ...grant, expiresAt });
    expect(created).toMatchObject({
      status: 201,
      body: { expiresAt, grantedBy: creator.platformUserId, isActive: true },
    });
    expect((await sign('colleague', wallet.id)).status).toBe(200);
    expect(await call('granting', 'POST', url, grant)).toMatchObject({
      status: 409,
      body: { code: 'GRANT_EXISTS' },
    });
    replica.clock.advance(DAY_MS);
    expect((await sign('colleague', wallet.id)).status).toBe(403);
    expect((await call('granting', 'POST', url, grant)).status).toBe(201);
    expect((await sign('colleague', wallet.id)).status).toBe(200);
    expect((await call('granting', 'GET', `${url}?pageSize=1`)).body).toMatchObject({
      totalCount: 3,
      hasMore: true,
    });
  });

  test('a repeated Idempotency-Key gives the same grant, and 409 for another body', async () => {
    const { wallet, organizationId } = await organization('repeating');
    const grant = {
      subject: randomUUID(),
      accessRight: 'ReadWrite',
      allowedDerivationContexts: [ATTESTATION],
    };
    const post = async (payload: object) => {
      const url = `/api/v1/wallets/${wallet.id}/access`;
      const headers = { authorization: 'repeating', 'idempotency-key': organizationId };
      const response = await app.inject({ method: 'POST', url, headers, payload });
      return { status: response.statusCode, body: response.json() };
    };
    const first = await post(grant);
    expect(first.status).toBe(201);
    expect(await post(grant)).toEqual(first);
    expect(await post({ ...grant, reason: 'other' })).toMatchObject({
      status: 409,
      body: { code: 'IDEMPOTENCY_KEY_REUSED' },
    });
    const { subject, accessRight, allowedDerivationContexts: allowedContexts } = grant;
    const hash = sha256(
      canonicalBytes({ subject, accessRight, reason: '', expiresAtMs: 0, allowedContexts }),
    );
    const rows = await replica.db.transact((tx) =>
      sql`select 1 from idempotency_keys where body_hash = ${Buffer.from(hash)}`.execute(tx),
    );
    expect(rows.rows).toHaveLength(1);
  });

  test('a revocation takes effect at once and the check shows it; other callers may do neither', async () => {
    const { wallet, creator } = await organization('revoking');
    const subject = creator.platformUserId ?? '';
    callers.set('stranger', person());
    const url = `/api/v1/wallets/${wallet.walletAddress}/access`;
    const check = (who: string, right: string) => call(who, 'GET', `${url}/${subject}/check?right=${right}`);
    expect((await check('revoking', 'ReadWrite')).body).toMatchObject({
      hasAccess: true,
      allowedDerivationContexts: [ATTESTATION],
    });
    expect((await check('revoking', 'Owner')).body).toMatchObject({ hasAccess: false });
    expect((await check('stranger', 'ReadOnly')).status).toBe(403);
    expect((await check('revoking', 'Everything')).status).toBe(400);
    for (const [method, path] of [
      ['GET', url],
      ['DELETE', `${url}/${subject}`],
    ] as const) {
      expect((await call('stranger', method, path)).status).toBe(403);
    }
    const grant = { subject: randomUUID(), accessRight: 'ReadOnly' };
    expect((await call('stranger', 'POST', url, grant)).status).toBe(403);
    expect((await call('revoking', 'DELETE', `${url}/${subject}`)).status).toBe(204);
    expect((await sign('revoking', wallet.id)).status).toBe(403);
    expect((await check('revoking', 'ReadOnly')).body).toMatchObject({
      hasAccess: false,
      allowedDerivationContexts: [],
    });
    expect(await call('revoking', 'DELETE', `${url}/${subject}`)).toMatchObject({
      status: 404,
      body: { code: 'GRANT_NOT_FOUND' },
    });
    expect((await call('revoking', 'GET', `/api/v1/wallets/${randomUUID()}/access`)).status).toBe(404);
  });

  test('a grant of an earlier release that names dedicated contexts gives no access to them and lists none', async () => {
    const { wallet, creator } = await organization('legacy');
    const named = [...DEDICATED, ATTESTATION];
    await replica.db.pool.query('UPDATE wallet_grants SET allowed_contexts = $2 WHERE wallet_id = $1', [
      wallet.id,
      named,
    ]);
    const denied = { status: 403, body: { code: 'WALLET_ACCESS_DENIED' } };
    const subject = rpcContext('service-register', { subject: creator });
    for (const name of DEDICATED) {
      expect(await sign('legacy', wallet.id, { derivationPath: name })).toMatchObject(denied);
      const request = {
        walletAddress: wallet.walletAddress,
        digest: new Uint8Array(32),
        derivationContext: name,
      };
      await expect(walletHandlers(replica.deps).signDigest(request as never, subject)).rejects.toMatchObject({
        code: 'WALLET_ACCESS_DENIED',
      });
    }
    expect((await sign('legacy', wallet.id)).status).toBe(200);
    const access = `/api/wallets/${wallet.id}/access`;
    const listed = await call('legacy', 'GET', access);
    expect(listed.body.items).toMatchObject([{ allowedDerivationContexts: [ATTESTATION] }]);
    const check = await call('legacy', 'GET', `${access}/${creator.platformUserId}/check?right=ReadWrite`);
    expect(check.body).toMatchObject({ hasAccess: true, allowedDerivationContexts: [ATTESTATION] });
  });

  test('a person shares a wallet for reading, and for signing under a named context', async () => {
    callers.set('owner', person());
    const friend = person();
    callers.set('friend', friend);
    const { body: wallet } = await call('owner', 'POST', '/api/wallets', {
      title: 'Mine',
      keyType: 'ED25519',
    });
    expect((await call('friend', 'GET', `/api/wallets/${wallet.id}`)).status).toBe(404);
    const grant = {
      subject: friend.platformUserId,
      accessRight: 'ReadWrite',
      allowedDerivationContexts: [ATTESTATION, 'platform:payload-encryption'],
    };
    expect((await call('owner', 'POST', `/api/wallets/${wallet.id}/access`, grant)).status).toBe(201);
    expect((await call('friend', 'GET', `/api/wallets/${wallet.id}`)).status).toBe(200);
    expect((await sign('friend', wallet.id)).status).toBe(200);
    expect((await sign('friend', wallet.id, { derivationPath: undefined })).status).toBe(403);
    const message = { data: 'shared', recipientWalletId: wallet.id };
    const sealed = await call('owner', 'POST', `/api/wallets/${wallet.id}/encrypt`, message);
    const encryptedData = sealed.body.encryptedData;
    expect(
      (await call('friend', 'POST', `/api/wallets/${wallet.id}/decrypt`, { encryptedData })).body.data,
    ).toBe('shared');
    expect((await call('friend', 'GET', `/api/wallets/${wallet.id}/access`)).status).toBe(403);
  });

  test('gRPC: a granted organisation wallet is listed after own wallets and signs only under its context', async () => {
    const { creator, wallet } = await organization('grpc');
    const { body: own } = await call('grpc', 'POST', '/api/wallets', { title: 'Own', keyType: 'ED25519' });
    const handlers = walletHandlers(replica.deps);
    const context = rpcContext('service-register', { subject: creator });
    const { wallets } = await handlers.listSubjectWallets({} as never, context);
    expect(wallets?.map((each) => each.walletAddress)).toEqual([own.walletAddress, wallet.walletAddress]);
    const listFor = async (derivationContext: string) => {
      const answer = await handlers.listSubjectWallets({ derivationContext } as never, context);
      return answer.wallets?.map((each) => each.walletAddress);
    };
    expect(await listFor(ATTESTATION)).toEqual([own.walletAddress, wallet.walletAddress]);
    expect(await listFor('')).toEqual([own.walletAddress]);
    await expect(listFor('platform:nothing')).rejects.toMatchObject({ code: 'UNKNOWN_DERIVATION_CONTEXT' });
    await expect(listFor('platform:citizen-holder')).rejects.toMatchObject({
      code: 'DERIVATION_CONTEXT_RESERVED',
    });
    const demoted = rpcContext('service-register', { subject: { ...creator, roles: ['User'] } });
    const { wallets: fewer } = await handlers.listSubjectWallets({} as never, demoted);
    expect(fewer?.map((each) => each.walletAddress)).toEqual([own.walletAddress]);
    const request = {
      walletAddress: wallet.walletAddress,
      digest: new Uint8Array(32),
      derivationContext: ATTESTATION,
    };
    const { key } = await handlers.signDigest(request as never, context);
    expect(key?.walletAddress).not.toBe(wallet.walletAddress);
    const plain = { ...request, derivationContext: '' };
    await expect(handlers.signDigest(plain as never, context)).rejects.toMatchObject({
      code: 'WALLET_ACCESS_DENIED',
    });
  });
});
