import { randomUUID } from 'node:crypto';
import { inflateSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createOrganization, createPerson } from '../harness/governance.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { createRegister, waitConfirmed, waitOnline } from '../harness/journey.ts';
import { Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { organizationKeys } from '../harness/organization-keys.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();

const listed = z.object({
  items: z.array(z.object({ transactionId: z.string(), transactionType: z.string() })),
});
const withPayload = z.object({ payload: z.string() });
const recordedChange = z.object({
  status: z.string(),
  statusList: z.object({ uri: z.string(), idx: z.number(), value: z.number() }),
});
const asked = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const auditSchema = z.object({
  events: z.array(z.object({ eventType: z.string(), details: z.record(z.string(), z.unknown()) })),
});

describe('a credential in a wallet of another maker', () => {
  let organization: IssuingOrganization;
  const wallet = new Openid4vcWallet();
  const presenter = new Openid4vpWallet();

  beforeAll(async () => {
    organization = await createIssuingOrganization(here);
  });

  test('is taken by code, with a transaction code and DPoP, by value and by reference', async () => {
    const made = await organization.offer({ txCode: { length: 6 } });
    const [held] = await wallet.take(made.credentialOfferUri, { txCode: made.txCode ?? '', dpop: true });
    const [jws = '', ...rest] = (held?.compact ?? '').split('~');
    const payload = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
    expect(payload).toMatchObject({ vct: 'urn:platform:credential:site-permit', cnf: { jwk: held?.jwk } });
    expect(rest.slice(0, -1)).toHaveLength(3);
    const again = await organization.offer();
    expect(await wallet.take(again.credentialOfferReferenceUri, { count: 3 })).toHaveLength(3);
    expect(await organization.credentialIds(again.offerId)).toHaveLength(3);
    await expect(wallet.take(again.credentialOfferUri)).rejects.toThrow();
  });

  /** Events of a credential in the audit log of its organisation, by type. */
  const auditOf = async (credentialId: string) => {
    const path = `/api/organizations/${organization.organizationId}/audit?pageSize=200`;
    const { body } = await here.api.expect(200, 'GET', path, { token: organization.administrator.token });
    return auditSchema
      .parse(body)
      .events.filter(({ details }) => details['resourceId'] === credentialId)
      .map(({ eventType, details }) => [eventType, details['status']])
      .toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
  };

  test('is suspended, reinstated and revoked, and the list of the gateway shows it', async () => {
    const made = await organization.offer();
    const [held] = await wallet.take(made.credentialOfferUri);
    const [id = ''] = await organization.credentialIds(made.offerId);
    const [, body = ''] = (held?.compact ?? '').split('.');
    const { status } = JSON.parse(Buffer.from(body, 'base64url').toString());
    const { idx, uri } = status.status_list;
    const listed = async () => {
      const token = await (await fetch(uri)).text();
      const { status_list: list, sub } = JSON.parse(
        Buffer.from(token.split('.')[1] ?? '', 'base64url').toString(),
      );
      expect(sub).toBe(uri);
      const bytes = inflateSync(Buffer.from(list.lst, 'base64url'));
      return ((bytes[Math.floor(idx / 4)] ?? 0) >> ((idx % 4) * 2)) & 3;
    };
    expect(await listed()).toBe(0);
    for (const [verb, expected] of [
      ['suspend', 2],
      ['reinstate', 0],
      ['revoke', 1],
    ] as const) {
      await organization.change(id, verb);
      expect(await listed()).toBe(expected);
    }
    // The audit log of the organisation follows within seconds.
    await expect
      .poll(() => auditOf(id), { timeout: 10_000 })
      .toEqual([
        ['CredentialIssued', undefined],
        ['CredentialStatusChanged', 'Active'],
        ['CredentialStatusChanged', 'Revoked'],
        ['CredentialStatusChanged', 'Suspended'],
      ]);
  });

  test('of the anchor register has its changes on the ledger, from which its list can be made again', async () => {
    const { token, wallet: owner } = organization.administrator;
    const registerId = await createRegister(here.api, token, 'Statuses of credentials', owner);
    await waitOnline(here.api, token, registerId);
    const made = await organization.offer({ trustAnchor: 'register', registerId });
    await wallet.take(made.credentialOfferUri);
    const [id = ''] = await organization.credentialIds(made.offerId);
    const changes = [];
    for (const verb of ['suspend', 'reinstate', 'revoke'] as const)
      changes.push(await organization.change(id, verb));
    const [{ listId = '', index = 0 } = {}] = changes;
    for (const { transactionId } of changes)
      await waitConfirmed(here.api, token, registerId, transactionId ?? 'none');
    const path = `/api/registers/${registerId}/transactions?pageSize=10`;
    const { items } = listed.parse((await here.api.expect(200, 'GET', path, { token })).body);
    const recorded = items.filter(({ transactionType }) => transactionType === 'CredentialStatusChange');
    // The newest is first.
    expect(recorded.map((one) => one.transactionId)).toEqual(
      changes.map(({ transactionId }) => transactionId).toReversed(),
    );
    const payloads = await Promise.all(
      recorded.map(async ({ transactionId }) => {
        const one = `/api/registers/${registerId}/transactions/${transactionId}`;
        const { payload } = withPayload.parse((await here.api.expect(200, 'GET', one, { token })).body);
        return recordedChange.parse(JSON.parse(Buffer.from(payload, 'base64').toString()));
      }),
    );
    expect(payloads.map(({ status, statusList }) => [status, statusList.idx, statusList.value])).toEqual([
      ['Revoked', index, 1],
      ['Active', index, 0],
      ['Suspended', index, 2],
    ]);
    expect(payloads[0]?.statusList.uri).toMatch(new RegExp(`/ietf-status-lists/${listId}$`));
  });

  test.each([
    ['direct_post', 'x509_san_dns', 'x509-tenant'],
    ['direct_post.jwt', 'x509_hash', 'x509-tenant'],
    ['direct_post', 'x509_san_dns', 'register'],
  ])('is presented by %s to %s, and verified under %s', async (responseMode, clientIdPrefix, trustAnchor) => {
    const made = await organization.offer({ trustAnchor });
    const [held] = await wallet.take(made.credentialOfferUri);
    if (held === undefined) throw new Error('the wallet got no credential');
    const json = {
      credentialType: 'urn:platform:credential:site-permit',
      requiredClaims: ['permitNumber', 'area'],
      responseMode,
      clientIdPrefix,
    };
    const ask = async () => {
      const created = await here.api.expect(201, 'POST', '/api/v1/verifier/requests', {
        token: organization.administrator.token,
        json,
      });
      return asked.parse(created.body);
    };
    const resultOf = async (requestId: string) => {
      const path = `/api/v1/verifier/requests/${requestId}/result`;
      return (await here.api.expect(200, 'GET', path, { token: organization.administrator.token })).body;
    };
    const request = await ask();
    const opened = await presenter.open(request.authorizationRequestUri);
    expect(opened.clientIdPrefix).toBe(clientIdPrefix);
    const answer = await presenter.answer(opened, 'credential', held, ['permitNumber', 'area']);
    expect(answer).toEqual({ status: 200, body: {} });
    expect(await resultOf(request.requestId)).toMatchObject({
      state: 'Verified',
      result: {
        verifiedClaims: { permitNumber: 'P-17', area: 620 },
        holderKeyVerified: true,
        statusCheckResult: 'Valid',
        trust: { decision: 'Trusted' },
      },
    });
    const again = await presenter.answer(opened, 'credential', held, ['permitNumber', 'area']);
    expect(again.status).toBe(409);
    const [id = ''] = await organization.credentialIds(made.offerId);
    await organization.change(id, 'suspend');
    const second = await ask();
    await presenter.answer(await presenter.open(second.authorizationRequestUri), 'credential', held, [
      'permitNumber',
      'area',
    ]);
    expect(await resultOf(second.requestId)).toMatchObject({
      state: 'Failed',
      result: { errors: [{ code: 'STATUS_SUSPENDED' }], verifiedClaims: {} },
    });
  });

  test('is offered by an organisation whose first wallet has just been made', async () => {
    const made = await createOrganization(here.api, here.token(), 'new-issuer');
    const chief = await createPerson(here.api, here.token(), made, { name: 'chief', role: 'Administrator' });
    const keys = organizationKeys(here.api, chief.token, made.id);
    const { walletAddress: issuerWalletAddress } = await keys.makeMaster();
    const json = { issuerWalletAddress, tenantId: made.id, credentialType: 'Badge', claims: { level: 1 } };
    const offer = () => here.api.send('POST', '/api/v1/offers', { token: organization.service, json });
    await expect.poll(async () => (await offer()).status, { timeout: 15_000, interval: 500 }).toBe(201);
  });

  test('is not offered with the wallet of another organisation, or by people', async () => {
    const json = {
      issuerWalletAddress: organization.walletAddress,
      tenantId: randomUUID(),
      credentialType: 'x',
      trustAnchor: 'register',
      claims: {},
    };
    await here.api.expect(422, 'POST', '/api/v1/offers', { token: organization.service, json });
    await here.api.expect(403, 'POST', '/api/v1/offers', { token: organization.administrator.token, json });
  });
});
