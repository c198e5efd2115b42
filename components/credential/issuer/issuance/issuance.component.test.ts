import { createHash, X509Certificate } from 'node:crypto';
import { compactDecrypt, compactVerify, importX509 } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { refusal } from '../../errors.ts';
import { type Fixture, issuerUrl, openFixture } from '../../testing/fixture.ts';
import { issuingCertificate } from '../../testing/issuing-certificates.ts';
import { configurationOf, decodeSdJwt, TestWallet, walletKey } from '../../testing/wallet.ts';

let fixture: Fixture;
let wallet: TestWallet;

beforeAll(async () => {
  fixture = await openFixture('credential_issuance');
  wallet = new TestWallet(fixture);
});

afterAll(() => fixture.close());

beforeEach(() => {
  delete fixture.outage.chain;
  delete fixture.outage.sign;
});

const countCredentials = async () =>
  (await fixture.db.read.selectFrom('credentials').select('id').execute()).length;

describe('a credential', () => {
  test('is an SD-JWT VC that the certificate of the issuer verifies, bound to the key of the wallet', async () => {
    const key = await walletKey();
    const { answer, offer } = await wallet.issued(key, { validitySeconds: 3600 });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['cache-control']).toBe('no-store');
    const [{ credential }] = answer.json().credentials;
    const { header, payload, jws, disclosures, rest } = decodeSdJwt(credential);
    expect(header).toEqual({ alg: 'ES256', typ: 'dc+sd-jwt', x5c: [expect.any(String)] });
    const leaf = new X509Certificate(Buffer.from(header.x5c[0], 'base64'));
    expect(leaf.verify(new X509Certificate(fixture.organization.certificate.rootPem).publicKey)).toBe(true);
    await compactVerify(jws, await importX509(leaf.toString(), 'ES256'));
    expect(payload).toMatchObject({
      iss: issuerUrl,
      vct: 'urn:platform:credential:site-permit',
      iat: wallet.nowSeconds,
      exp: wallet.nowSeconds + 3600,
      cnf: { jwk: key.jwk },
      _sd_alg: 'sha-256',
      status: { status_list: { idx: expect.any(Number), uri: expect.stringContaining(issuerUrl) } },
    });
    expect(payload).not.toHaveProperty('permitNumber');
    expect(rest.at(-1)).toBe('');
    const digests = rest.slice(0, -1).map((one) => createHash('sha256').update(one).digest('base64url'));
    expect(payload._sd).toEqual(expect.arrayContaining(digests));
    expect(payload._sd).toEqual([...payload._sd].sort());
    expect(new Set(disclosures.map(([, name]) => name))).toEqual(
      new Set(['permitNumber', 'area', 'address']),
    );
    const state = await fixture.app.inject({
      url: `/api/v1/offers/${offer.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    expect(state.json()).toMatchObject({ status: 'Exchanged', credentialIds: [expect.any(String)] });
  });

  test('has nested disclosures where the offer names them', async () => {
    const { answer } = await wallet.issued(await walletKey(), {
      claims: { name: 'A', address: { street: 'S', town: 'T' }, roles: ['x', 'y'] },
      disclosablePaths: ['/address/street', '/roles/1', 'address'],
      statusList: false,
    });
    const { payload, disclosures } = decodeSdJwt(answer.json().credentials[0].credential);
    expect(payload).toMatchObject({ name: 'A', roles: ['x', { '...': expect.any(String) }] });
    expect(payload).not.toHaveProperty('status');
    const address = disclosures.find(([, name]) => name === 'address');
    expect(address[2]).toEqual({ town: 'T', _sd: expect.any(Array) });
    expect(disclosures.find((one) => one.length === 2)[1]).toBe('y');
  });

  test('names the key of its issuer by a DID URL where the register is the anchor', async () => {
    const { answer } = await wallet.issued(await walletKey(), { trustAnchor: 'register' });
    const { header, payload } = decodeSdJwt(answer.json().credentials[0].credential);
    const did = `did:platform:org:${fixture.organization.walletAddress}`;
    expect(header).toEqual({ alg: 'ES256', typ: 'dc+sd-jwt', kid: `${did}#issuer` });
    expect(payload.iss).toBe(did);
  });

  test.each(['ES256', 'EdDSA'])('is bound to a key of %s', async (alg) => {
    const { answer } = await wallet.issued(await walletKey(alg));
    expect(answer.statusCode).toBe(200);
  });

  test('comes ten at a time, each with a key, a salt and a place of its own', async () => {
    const { accessToken, configurationId } = await wallet.accepted();
    const nonce = await wallet.nonce();
    const keys = await Promise.all(Array.from({ length: 10 }, () => walletKey()));
    const jwt = await Promise.all(keys.map((key) => wallet.proof(key, { payload: { nonce } })));
    const body = { credential_configuration_id: configurationId, proofs: { jwt } };
    const { credentials } = (await wallet.credential(accessToken, body)).json();
    const read = credentials.map(({ credential }: { credential: string }) => decodeSdJwt(credential));
    expect(read.map(({ payload }: { payload: { cnf: unknown } }) => payload.cnf)).toEqual(
      keys.map(({ jwk }) => ({ jwk })),
    );
    const unique = (of: (one: ReturnType<typeof decodeSdJwt>) => string) => new Set(read.map(of)).size;
    expect(unique(({ payload }) => payload.status.status_list.idx)).toBe(10);
    expect(unique(({ rest }) => String(rest[0]))).toBe(10);
    const again = await wallet.credential(accessToken, {
      ...body,
      proofs: { jwt: [await wallet.proof(await walletKey())] },
    });
    expect([again.statusCode, again.json().error]).toEqual([400, 'credential_request_denied']);
  });

  test('is encrypted where the request asks for it', async () => {
    const { accessToken, configurationId } = await wallet.accepted();
    const key = await walletKey();
    const recipient = await walletKey('ECDH-ES');
    const body = (jwk: object, enc = 'A256GCM') => ({
      credential_configuration_id: configurationId,
      credential_response_encryption: { jwk: { ...jwk, kid: 'k1', alg: 'ECDH-ES' }, enc },
    });
    const request = async (jwk: object, enc?: string) => {
      const proofs = { jwt: [await wallet.proof(key)] };
      return wallet.credential(accessToken, { ...body(jwk, enc), proofs });
    };
    for (const wrong of [
      await request({ ...recipient.jwk, y: recipient.jwk.x }),
      await request(recipient.jwk, 'A256CBC-HS512'),
      await request({ ...recipient.jwk, d: 'AAAA' }),
      await request({ kty: 'oct', k: 'AAAA' }),
    ]) {
      expect([wrong.statusCode, wrong.json().error]).toEqual([400, 'invalid_encryption_parameters']);
    }
    const answer = await request(recipient.jwk);
    expect(answer.headers['content-type']).toBe('application/jwt');
    const opened = await compactDecrypt(answer.body, recipient.privateKey);
    expect(opened.protectedHeader).toMatchObject({ alg: 'ECDH-ES', enc: 'A256GCM', kid: 'k1' });
    expect(JSON.parse(Buffer.from(opened.plaintext).toString()).credentials).toHaveLength(1);
  });
});

describe('a request is refused, and issues nothing,', () => {
  test.each([
    ['without a token', {}, 401],
    ['with an unknown token', { authorization: `Bearer ${'a'.repeat(43)}` }, 401],
    ['with a token in another scheme', { authorization: 'Basic YTpi' }, 401],
  ])('%s', async (_, headers, status) => {
    const answer = await fixture.app.inject({ method: 'POST', url: '/credential', headers, payload: {} });
    expect([answer.statusCode, answer.json().error]).toEqual([status, 'invalid_token']);
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"');
  });

  test('with a token in the query, or one that has expired', async () => {
    const { accessToken } = await wallet.accepted();
    const inQuery = await fixture.app.inject({
      method: 'POST',
      url: `/credential?access_token=${accessToken}`,
      payload: {},
    });
    expect(inQuery.statusCode).toBe(401);
    fixture.clock.advance(300_000);
    expect((await wallet.credential(accessToken, {})).json().error).toBe('invalid_token');
  });

  test.each([
    ['the configuration is missing', {}, 'invalid_credential_request'],
    [
      'the configuration is unknown',
      { credential_configuration_id: 'nothing' },
      'unknown_credential_configuration',
    ],
    ['the configuration has U+0000', { credential_configuration_id: 'a\0' }, 'invalid_credential_request'],
    ['the type has U+0000', { format: 'dc+sd-jwt', vct: 'urn:a\0' }, 'invalid_credential_request'],
    ['it names a credential identifier', { credential_identifier: 'x' }, 'unknown_credential_identifier'],
    ['the format is another', { format: 'jwt_vc_json', vct: 'x' }, 'invalid_credential_request'],
  ])('when %s', async (_, change, error) => {
    const { accessToken } = await wallet.accepted();
    const before = await countCredentials();
    const body = { proofs: { jwt: [await wallet.proof(await walletKey())] }, ...change };
    const answer = await wallet.credential(accessToken, body);
    expect([answer.statusCode, answer.json().error]).toEqual([400, error]);
    expect(await countCredentials()).toBe(before);
  });

  test('when the token was given for another configuration', async () => {
    const other = (await wallet.offer({ credentialType: 'Other' })).json();
    const { accessToken } = await wallet.accepted();
    const answer = await wallet.credential(accessToken, {
      credential_configuration_id: configurationOf(other),
      proofs: { jwt: [await wallet.proof(await walletKey())] },
    });
    expect([answer.statusCode, answer.json().error]).toEqual([400, 'invalid_credential_request']);
  });

  test('for each fault of a proof', async () => {
    const { accessToken, configurationId } = await wallet.accepted();
    const before = await countCredentials();
    const key = await walletKey();
    const privateJwk = { ...key.jwk, d: 'AAAA' };
    const nonce = await wallet.nonce();
    const two = await walletKey();
    const hs = `${Buffer.from('{"typ":"openid4vci-proof+jwt","alg":"HS256"}').toString('base64url')}.e30.AAAA`;
    const none = `${Buffer.from('{"typ":"openid4vci-proof+jwt","alg":"none"}').toString('base64url')}.e30.`;
    const valid = await wallet.proof(key);
    const [head, , signature] = valid.split('.');
    const forged = Buffer.from(JSON.stringify({ aud: issuerUrl, iat: wallet.nowSeconds, nonce })).toString(
      'base64url',
    );
    const proofs: Readonly<Record<string, readonly unknown[]>> = {
      none: [],
      eleven: Array.from({ length: 11 }, () => valid),
      number: [5],
      audience: [await wallet.proof(key, { payload: { aud: 'https://other.test' } })],
      audiences: [await wallet.proof(key, { payload: { aud: [issuerUrl, 'https://other.test'] } })],
      typ: [await wallet.proof(key, { header: { typ: 'JWT' } })],
      'alg none': [none],
      HS256: [hs],
      'two key members': [await wallet.proof(key, { header: { kid: 'k' } })],
      x5c: [await wallet.proof(key, { header: { x5c: ['AAAA'] } })],
      'private key': [await wallet.proof(key, { header: { jwk: privateJwk } })],
      'key of another': [await wallet.proof(key, { header: { jwk: two.jwk } })],
      'no key': [await wallet.proof(key, { header: { jwk: undefined } })],
      old: [await wallet.proof(key, { payload: { iat: wallet.nowSeconds - 301 } })],
      future: [await wallet.proof(key, { payload: { iat: wallet.nowSeconds + 61 } })],
      expired: [await wallet.proof(key, { payload: { exp: wallet.nowSeconds } })],
      'no nonce': [await wallet.proof(key, { payload: { nonce: undefined } })],
      'changed payload': [`${head}.${forged}.${signature}`],
      'same key twice': [
        await wallet.proof(key, { payload: { nonce } }),
        await wallet.proof(key, { payload: { nonce } }),
      ],
      'two nonces': [await wallet.proof(key), await wallet.proof(two)],
      long: [`${valid}${'A'.repeat(9000)}`],
      text: ['not a jwt'],
    };
    for (const [fault, jwt] of Object.entries(proofs)) {
      const body = { credential_configuration_id: configurationId, proofs: { jwt } };
      const answer = await wallet.credential(accessToken, body);
      expect([answer.statusCode, answer.json().error], fault).toEqual([400, 'invalid_proof']);
    }
    const other = { credential_configuration_id: configurationId, proofs: { ldp_vp: [{}] } };
    expect((await wallet.credential(accessToken, other)).json().error).toBe('invalid_proof');
    const both = { ...other, proofs: { jwt: [valid] }, proof: { proof_type: 'jwt', jwt: valid } };
    expect((await wallet.credential(accessToken, both)).json().error).toBe('invalid_proof');
    expect(await countCredentials()).toBe(before);
    const fair = { credential_configuration_id: configurationId, proofs: { jwt: [valid] } };
    expect((await wallet.credential(accessToken, fair)).statusCode).toBe(200);
  });

  test('when the key is not that of the offer', async () => {
    const key = await walletKey();
    const change = { holderJwkThumbprint: key.thumbprint };
    expect((await wallet.issued(await walletKey(), change)).answer.json().error).toBe('invalid_proof');
    expect((await wallet.issued(key, change)).answer.statusCode).toBe(200);
  });

  test('for each fault of a nonce', async () => {
    const { accessToken, configurationId } = await wallet.accepted();
    const key = await walletKey();
    const dpop = await wallet.dpopNonce();
    const old = await wallet.nonce();
    fixture.clock.advance(1000);
    const used = await wallet.proof(key);
    const send = (jwt: string) =>
      wallet.credential(accessToken, {
        credential_configuration_id: configurationId,
        proofs: { jwt: [jwt] },
      });
    expect((await send(used)).statusCode).toBe(200);
    for (const [fault, jwt] of Object.entries({
      unknown: await wallet.proof(key, { payload: { nonce: 'abc' } }),
      changed: await wallet.proof(key, {
        payload: { nonce: `${old.slice(0, -2)}${old.endsWith('AA') ? 'BB' : 'AA'}` },
      }),
      'of DPoP': await wallet.proof(key, { payload: { nonce: dpop } }),
      used,
    })) {
      const answer = await send(jwt);
      expect([answer.statusCode, answer.json().error], fault).toEqual([400, 'invalid_nonce']);
    }
    fixture.clock.advance(299_500);
    const expired = await wallet.accepted();
    const proof = await wallet.proof(key, { payload: { nonce: old } });
    const body = { credential_configuration_id: configurationId, proofs: { jwt: [proof] } };
    expect((await wallet.credential(expired.accessToken, body)).json().error).toBe('invalid_nonce');
  });

  test('by all but one of ten that use a nonce at one time, also on two replicas', async () => {
    const other = new TestWallet(fixture, fixture.replica());
    const nonce = await wallet.nonce();
    const key = await walletKey();
    const sent = Array.from({ length: 10 }, async (_, index) => {
      const by = index % 2 === 0 ? wallet : other;
      const { accessToken, configurationId } = await by.accepted();
      const jwt = [await by.proof(key, { payload: { nonce } })];
      return by.credential(accessToken, { credential_configuration_id: configurationId, proofs: { jwt } });
    });
    const statuses = (await Promise.all(sent)).map(({ statusCode }) => statusCode).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 400)]);
  });
});

describe('an outage in mid-flow', () => {
  test.each([
    ['chain', 'CERTIFICATES_UNAVAILABLE', 503, 'temporarily_unavailable'],
    ['sign', 'WALLETS_UNAVAILABLE', 503, 'temporarily_unavailable'],
    ['sign', 'WALLET_LOCKED', 400, 'credential_request_denied'],
    ['chain', 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE', 400, 'credential_request_denied'],
  ] as const)(
    'of %s (%s) uses nothing up: the same request succeeds afterwards',
    async (part, code, status, error) => {
      const { accessToken, configurationId } = await wallet.accepted();
      const before = await countCredentials();
      const jwt = [await wallet.proof(await walletKey())];
      const send = () =>
        wallet.credential(accessToken, { credential_configuration_id: configurationId, proofs: { jwt } });
      fixture.outage[part] = refusal(code);
      const refused = await send();
      expect([refused.statusCode, refused.json().error]).toEqual([status, error]);
      expect(await countCredentials()).toBe(before);
      delete fixture.outage[part];
      expect((await send()).statusCode).toBe(200);
      expect((await send()).json().error).toBe('invalid_nonce');
      expect(await countCredentials()).toBe(before + 1);
    },
  );

  test('a key that the certificate does not name issues nothing', async () => {
    const { accessToken, configurationId } = await wallet.accepted();
    const jwt = [await wallet.proof(await walletKey())];
    const kept = fixture.organization.certificate;
    const other = await issuingCertificate('issuer.test', fixture.clock.nowMs());
    fixture.organization.certificate = { ...kept, sign: other.sign };
    const body = { credential_configuration_id: configurationId, proofs: { jwt } };
    const answer = await wallet.credential(accessToken, body);
    fixture.organization.certificate = kept;
    expect([answer.statusCode, answer.json().error]).toEqual([400, 'credential_request_denied']);
  });
});

test('legacy requests of one proof, and by format and type, are understood', async () => {
  const { accessToken } = await wallet.accepted();
  const answer = await wallet.credential(accessToken, {
    format: 'vc+sd-jwt',
    vct: 'urn:platform:credential:site-permit',
    proof: { proof_type: 'jwt', jwt: await wallet.proof(await walletKey()) },
  });
  expect(answer.statusCode).toBe(200);
});
