import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { signEntityList, uploadList } from '../harness/entity-list.ts';
import { createOrganization, createPerson } from '../harness/governance.ts';
import { type IssuedCertificate, issueCertificate } from '../harness/issued-certificate.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { signIn } from '../harness/journey.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import {
  certificateHash,
  createOpenSslAuthority,
  type OpenSslAuthority,
} from '../harness/openssl-authority.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

const requested = z.object({ csrPem: z.string(), boundKeySource: z.string() });
const created = z.object({ walletAddress: z.string() });
const imported = z.object({ id: z.string() });
const asked = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });
const held = z.object({ x5c: z.array(z.string()) });

let directory: string;
let system: LocalSystem;
let api: Api;
let token: string;
let organization: IssuingOrganization;
let authority: OpenSslAuthority;
let signer: IssuedCertificate;
let credential: HeldCredential;
const wallet = new Openid4vcWallet();
const presenter = new Openid4vpWallet();

const start = async (env: Readonly<Record<string, string>> = {}, port = '0') => {
  system = await startSystem({ dataDir: join(directory, 'data'), env, args: ['--port', port] });
  api = createApi(system.state.gatewayUrl);
  token = (await signIn(api, system.state)).access_token;
};

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'chancery-trust-'));
  await start();
  authority = createOpenSslAuthority(directory);
  signer = await issueCertificate(directory, 'scheme', 'lists.example');
  organization = await createIssuingOrganization({ api, token: () => token, state: system.state });
});

afterAll(async () => {
  await system?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const trustPath = (walletAddress = organization.walletAddress) =>
  `/api/v1/trust/tenants/${organization.organizationId}/orgs/${walletAddress}`;
const manage = (status: number, method: string, path: string, json?: object) =>
  api.expect(status, method, path, {
    token: organization.administrator.token,
    ...(json !== undefined && { json }),
  });
const request = async () => requested.parse((await manage(200, 'POST', `${trustPath()}/csr`, {})).body);
const importOf = async (certificatePem: string, status = 201) => {
  const json = { certificatePem, chainPem: [authority.issuing, authority.root] };
  return (await manage(status, 'POST', `${trustPath()}/certificates/import`, json)).body;
};
const offerOf = (trustAnchor: string) =>
  api.send('POST', '/api/v1/offers', {
    token: organization.service,
    json: {
      issuerWalletAddress: organization.walletAddress,
      tenantId: organization.organizationId,
      credentialType: 'Site permit',
      claims: { permitNumber: 'P-17' },
      trustAnchor,
    },
  });

/** The result of a presentation that is judged under one trust list. */
async function judgedBy(trustListId: string): Promise<unknown> {
  const json = {
    credentialType: 'urn:platform:credential:site-permit',
    requiredClaims: ['permitNumber'],
    trustPolicy: { sources: [{ kind: 'trustlist', trustListId }] },
  };
  const { requestId, authorizationRequestUri } = asked.parse(
    (await manage(201, 'POST', '/api/v1/verifier/requests', json)).body,
  );
  const opened = await presenter.open(authorizationRequestUri);
  const answer = await presenter.answer(opened, 'credential', credential, ['permitNumber']);
  expect(answer.status).toBe(200);
  return (await manage(200, 'GET', `/api/v1/verifier/requests/${requestId}/result`)).body;
}

describe('a certificate of an authority outside', () => {
  test('is refused for the key of another organisation, and without the authorities between', async () => {
    const other = await createIssuingOrganization({ api, token: () => token, state: system.state });
    const path = `/api/v1/trust/tenants/${other.organizationId}/orgs/${other.walletAddress}/csr`;
    const { body } = await api.expect(200, 'POST', path, { token: other.administrator.token, json: {} });
    expect(await importOf(authority.issue(requested.parse(body).csrPem), 422)).toMatchObject({
      code: 'CERT_KEY_MISMATCH',
    });
    const { csrPem } = await request();
    const json = { certificatePem: authority.issue(csrPem), chainPem: [authority.root] };
    const gap = await manage(422, 'POST', `${trustPath()}/certificates/import`, json);
    expect(gap.body).toMatchObject({ code: 'CERT_CHAIN_INVALID' });
    expect(await offerOf('x509-lotl')).toMatchObject({
      status: 422,
      body: { code: 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE' },
    });
  });

  test('is requested, issued by OpenSSL and imported; credentials carry its chain without the root', async () => {
    const { csrPem } = await request();
    await importOf(authority.issue(csrPem));
    const offer = await organization.offer({ trustAnchor: 'x509-lotl' });
    const [taken] = await wallet.take(offer.credentialOfferUri);
    if (taken === undefined) throw new Error('the wallet got no credential');
    credential = taken;
    const { x5c } = held.parse(decodeProtectedHeader(credential.compact.split('~')[0] ?? ''));
    const chain = x5c.map((der) => new X509Certificate(Buffer.from(der, 'base64')));
    expect(chain).toHaveLength(2);
    expect(authority.verify(chain.map(String))).toContain(': OK');
    expect(chain[1]?.fingerprint256).toBe(new X509Certificate(authority.issuing).fingerprint256);
  });

  test('is retired, after which neither new nor waiting offers are issued under it', async () => {
    const { csrPem } = await request();
    const { id } = imported.parse(await importOf(authority.issue(csrPem)));
    const waiting = await organization.offer({ trustAnchor: 'x509-lotl' });
    await manage(204, 'DELETE', `${trustPath()}/certificates/${id}`);
    await api.expect(404, 'GET', `${trustPath()}/imported-cert-chain`);
    expect(await offerOf('x509-lotl')).toMatchObject({
      status: 422,
      body: { code: 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE' },
    });
    await expect(wallet.take(waiting.credentialOfferUri)).rejects.toThrow();
    expect(await organization.credentialIds(waiting.offerId)).toEqual([]);
    expect((await offerOf('x509-tenant')).status).toBe(201);
  });

  test.each([
    ['ED25519', 'HaipCoKey'],
    ['NISTP256', 'Primary'],
  ])('is requested for an organisation whose wallet is of %s', async (keyType, boundKeySource) => {
    const made = await createOrganization(api, token, 'keys');
    const chief = await createPerson(api, token, made, { name: 'chief', role: 'Administrator' });
    const make = (type: string) =>
      api.send('POST', '/api/wallets', {
        token: chief.token,
        json: { title: 'Issuing', keyType: type, organizationId: made.id },
      });
    // RSA has no keys for certificates, so an organisation cannot have such a wallet.
    expect(await make('RSA')).toMatchObject({ status: 400, body: { code: 'ORGANIZATION_KEY_TYPE' } });
    const { walletAddress } = created.parse((await make(keyType)).body);
    const path = `/api/v1/trust/tenants/${made.id}/orgs/${walletAddress}/csr`;
    const { body } = await api.expect(200, 'POST', path, { token: chief.token, json: {} });
    expect(body).toMatchObject({ boundKeySource });
  });
});

describe('a trust list', () => {
  const upload = (id: string, list: string) =>
    uploadList({ api, token }, id, { list, signerSha256: certificateHash(signer.certificate) });
  const listOf = (more: object = {}) =>
    signEntityList({ sequence: 5, anchor: authority.root, ...more }, signer);
  const trusted = (id: string, sequence: number) => ({
    state: 'Verified',
    result: {
      verifiedClaims: { permitNumber: 'P-17' },
      trust: {
        decision: 'Trusted',
        evidence: [{ kind: 'trustlist', vouched: true, trustListId: `${id}#${sequence}` }],
      },
    },
  });

  test('that is signed decides, and the verdict names its version', async () => {
    expect(await judgedBy('wallets')).toMatchObject({
      state: 'Failed',
      result: { verifiedClaims: {}, trust: { evidence: [{ reason: 'TRUSTLIST_UNAVAILABLE' }] } },
    });
    expect(await upload('wallets', await listOf())).toMatchObject({
      status: 201,
      body: { sequenceNumber: 5, rootCount: 1, freshness: 'Fresh' },
    });
    expect(await judgedBy('wallets')).toMatchObject(trusted('wallets', 5));
  });

  test('that is changed, replayed, older or of another signer changes nothing', async () => {
    const next = await listOf({ sequence: 6 });
    const at = next.indexOf('.') + 40;
    const changed = `${next.slice(0, at)}${next[at] === 'A' ? 'B' : 'A'}${next.slice(at + 1)}`;
    const other = await issueCertificate(directory, 'other', 'lists.example');
    const foreign = await signEntityList({ sequence: 7, anchor: authority.root }, other);
    for (const [what, list, status, code] of [
      ['changed', changed, 400, 'TRUSTLIST_SIGNATURE_INVALID'],
      ['replayed', await listOf(), 409, 'TRUSTLIST_SEQUENCE_REGRESSION'],
      ['older', await listOf({ sequence: 4 }), 409, 'TRUSTLIST_SEQUENCE_REGRESSION'],
      ['of another signer', foreign, 400, 'TRUSTLIST_SIGNATURE_INVALID'],
    ] as const)
      expect([what, await upload('wallets', list)]).toMatchObject([what, { status, body: { code } }]);
    expect(await judgedBy('wallets')).toMatchObject(trusted('wallets', 5));
  });

  test('whose service is withdrawn has no anchor of it', async () => {
    expect(await upload('withdrawn', await listOf({ isWithdrawn: true }))).toMatchObject({
      status: 201,
      body: { rootCount: 0, skipped: { status: 1 } },
    });
    expect(await judgedBy('withdrawn')).toMatchObject({
      state: 'Failed',
      result: { verifiedClaims: {}, trust: { evidence: [{ vouched: false }] } },
    });
  });

  test('that should have been replaced decides with a mark, and not at all where freshness is strict', async () => {
    const { status, body } = await upload('stale', await listOf({ isStale: true }));
    expect([status, body]).toMatchObject([201, { freshness: 'Stale' }]);
    expect(await judgedBy('stale')).toMatchObject({
      state: 'Verified',
      result: { trust: { evidence: [{ trustListId: 'stale#5', freshness: 'Stale' }] } },
    });
    await system.stop();
    // Credentials name the address of the issuer, so it must stay.
    await start({ Trust__TrustListStrictFreshness: 'true' }, new URL(api.baseUrl).port);
    expect(await judgedBy('stale')).toMatchObject({
      state: 'Failed',
      result: { verifiedClaims: {}, trust: { evidence: [{ vouched: false, reason: 'TRUSTLIST_STALE' }] } },
    });
    expect(await judgedBy('wallets')).toMatchObject(trusted('wallets', 5));
  });
});
