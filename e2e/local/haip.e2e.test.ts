import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { HaipWallet, typeCode } from '../harness/haip-wallet.ts';
import { type IssuedCertificate, issueCertificate } from '../harness/issued-certificate.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { signIn } from '../harness/journey.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

const requestSchema = z.object({ requestId: z.string(), authorizationRequestUri: z.string() });

let root: string;
let system: LocalSystem;
let api: Api;
let maker: IssuedCertificate;
let organization: IssuingOrganization;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'chancery-haip-'));
  maker = await issueCertificate(root, 'maker', 'wallet.example');
  const verifier = await issueCertificate(root, 'verifier', 'localhost');
  const env = {
    Haip__Profile: 'haip-1.0',
    Haip__AttestationAuthorities: maker.authorityFile,
    Haip__VerifierCertificate: verifier.bundleFile,
  };
  system = await startSystem({ dataDir: join(root, 'data'), env });
  api = createApi(system.state.gatewayUrl);
  const { access_token: token } = await signIn(api, system.state);
  organization = await createIssuingOrganization({ api, token: () => token, state: system.state });
});

afterAll(async () => {
  await system?.stop();
  rmSync(root, { recursive: true, force: true });
});

test('an attested wallet takes a credential by pushed request, transaction code and DPoP, and presents it encrypted', async () => {
  const made = await organization.offer();
  expect(made.credentialOfferUri).toMatch(/^haip-vci:/);
  const held = await new HaipWallet(maker).take(
    made.credentialOfferReferenceUri,
    typeCode(made.txCode ?? ''),
  );
  const json = { credentialType: 'urn:platform:credential:site-permit', requiredClaims: ['permitNumber'] };
  const created = await api.expect(201, 'POST', '/api/v1/verifier/requests', {
    token: organization.administrator.token,
    json,
  });
  const { requestId, authorizationRequestUri } = requestSchema.parse(created.body);
  const presenter = new Openid4vpWallet();
  const opened = await presenter.open(authorizationRequestUri);
  expect([opened.clientIdPrefix, opened.request.response_mode]).toEqual(['x509_hash', 'direct_post.jwt']);
  const form = { vp_token: JSON.stringify({ credential: [held.compact] }), state: 'any' };
  const plain = await api.send('POST', `/api/v1/verifier/requests/${requestId}/direct-post`, { form });
  expect(plain).toMatchObject({ status: 400, body: { code: 'RESPONSE_MODE_MISMATCH' } });
  const answers = [
    await presenter.answer(opened, 'credential', held, ['permitNumber']),
    await presenter.answer(opened, 'credential', held, ['permitNumber']),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 409]);
  const path = `/api/v1/verifier/requests/${requestId}/result`;
  const { body } = await api.expect(200, 'GET', path, { token: organization.administrator.token });
  expect(body).toMatchObject({ state: 'Verified', result: { verifiedClaims: { permitNumber: 'P-17' } } });
});

test('a wallet whose maker is not known gets nothing', async () => {
  const made = await organization.offer();
  const stranger = new HaipWallet(await issueCertificate(root, 'stranger', 'wallet.example'));
  const taken = stranger.take(made.credentialOfferReferenceUri, typeCode(made.txCode ?? ''));
  await expect(taken).rejects.toThrow('invalid_client');
});

test('nothing weaker is served', async () => {
  const made = await organization.offer();
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
    'pre-authorized_code': 'x',
    tx_code: made.txCode ?? '',
  };
  const { body } = await api.expect(400, 'POST', '/token', { form });
  expect(body).toMatchObject({ error: 'unsupported_grant_type' });
  const json = { credentialType: 'urn:x:y', responseMode: 'direct_post' };
  const refused = await api.expect(400, 'POST', '/api/v1/verifier/requests', {
    token: organization.administrator.token,
    json,
  });
  expect(refused.body).toMatchObject({ code: 'PROFILE_WEAKER' });
});
