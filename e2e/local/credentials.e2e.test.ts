import { randomUUID } from 'node:crypto';
import { inflateSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { organizationKeys } from '../harness/organization-keys.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();

const offered = z.object({
  offerId: z.string(),
  credentialOfferUri: z.string(),
  credentialOfferReferenceUri: z.string(),
  preAuthorizedCode: z.string(),
  txCode: z.string().optional(),
});
const asked = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const auditSchema = z.object({
  events: z.array(z.object({ eventType: z.string(), details: z.record(z.string(), z.unknown()) })),
});
const stateSchema = z.object({ status: z.string(), credentialIds: z.array(z.string()) });

describe('a credential in a wallet of another maker', () => {
  let organizationId: string;
  let administrator: Person;
  let walletAddress: string;
  let service: string;
  const wallet = new Openid4vcWallet();
  const presenter = new Openid4vpWallet();

  beforeAll(async () => {
    const organization = await createOrganization(here.api, here.token(), 'issuing');
    organizationId = organization.id;
    administrator = await createPerson(here.api, here.token(), organization, {
      name: 'administrator',
      role: 'Administrator',
    });
    const keys = organizationKeys(here.api, administrator.token, organizationId);
    ({ walletAddress } = await keys.makeMaster());
    service = (await mintWithSvid(here.state, 'service-blueprint')).token;
    const enrolled = await here.api.expect(
      200,
      'POST',
      `/api/v1/trust/tenants/${organizationId}/orgs/${walletAddress}/enrol`,
      {
        token: administrator.token,
        json: {},
      },
    );
    expect(enrolled.body).toMatchObject({ provenance: 'Internal', status: 'Active' });
  });

  const offer = async (change: Readonly<Record<string, unknown>> = {}) => {
    const json = {
      issuerWalletAddress: walletAddress,
      tenantId: organizationId,
      credentialType: 'Site permit',
      claims: { permitNumber: 'P-17', area: 620, validFor: 'Test town' },
      ...change,
    };
    return offered.parse(
      (await here.api.expect(201, 'POST', '/api/v1/offers', { token: service, json })).body,
    );
  };

  const credentialIds = async (offerId: string) =>
    stateSchema.parse(
      (await here.api.expect(200, 'GET', `/api/v1/offers/${offerId}`, { token: service })).body,
    ).credentialIds;

  test('is taken by code, with a transaction code and DPoP, by value and by reference', async () => {
    const made = await offer({ txCode: { length: 6 } });
    const [held] = await wallet.take(made.credentialOfferUri, { txCode: made.txCode ?? '', dpop: true });
    const [jws = '', ...rest] = (held?.compact ?? '').split('~');
    const payload = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
    expect(payload).toMatchObject({ vct: 'urn:platform:credential:site-permit', cnf: { jwk: held?.jwk } });
    expect(rest.slice(0, -1)).toHaveLength(3);
    const again = await offer();
    expect(await wallet.take(again.credentialOfferReferenceUri, { count: 3 })).toHaveLength(3);
    expect(await credentialIds(again.offerId)).toHaveLength(3);
    await expect(wallet.take(again.credentialOfferUri)).rejects.toThrow();
  });

  /** Events of a credential in the audit log of its organisation, by type. */
  const auditOf = async (credentialId: string) => {
    const path = `/api/organizations/${organizationId}/audit?pageSize=200`;
    const { body } = await here.api.expect(200, 'GET', path, { token: administrator.token });
    return auditSchema
      .parse(body)
      .events.filter(({ details }) => details['resourceId'] === credentialId)
      .map(({ eventType, details }) => [eventType, details['status']])
      .toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
  };

  test('is suspended, reinstated and revoked, and the list of the gateway shows it', async () => {
    const made = await offer();
    const [held] = await wallet.take(made.credentialOfferUri);
    const [id = ''] = await credentialIds(made.offerId);
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
      const call = { token: administrator.token, json: { reason: 'test' } };
      await here.api.expect(200, 'POST', `/api/v1/credentials/${id}/${verb}`, call);
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

  test.each([
    ['direct_post', 'x509_san_dns', 'x509-tenant'],
    ['direct_post.jwt', 'x509_hash', 'x509-tenant'],
    ['direct_post', 'x509_san_dns', 'register'],
  ])('is presented by %s to %s, and verified under %s', async (responseMode, clientIdPrefix, trustAnchor) => {
    const made = await offer({ trustAnchor });
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
        token: administrator.token,
        json,
      });
      return asked.parse(created.body);
    };
    const resultOf = async (requestId: string) => {
      const path = `/api/v1/verifier/requests/${requestId}/result`;
      return (await here.api.expect(200, 'GET', path, { token: administrator.token })).body;
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
    const [id = ''] = await credentialIds(made.offerId);
    await here.api.expect(200, 'POST', `/api/v1/credentials/${id}/suspend`, {
      token: administrator.token,
      json: { reason: 'test' },
    });
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

  test('is not offered with the wallet of another organisation, or by people', async () => {
    const json = {
      issuerWalletAddress: walletAddress,
      tenantId: randomUUID(),
      credentialType: 'x',
      trustAnchor: 'register',
      claims: {},
    };
    await here.api.expect(422, 'POST', '/api/v1/offers', { token: service, json });
    await here.api.expect(403, 'POST', '/api/v1/offers', { token: administrator.token, json });
  });
});
