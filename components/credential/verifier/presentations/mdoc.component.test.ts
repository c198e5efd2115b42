import { calculateJwkThumbprint, importJWK } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type DeviceKeys,
  deviceKeys,
  partsOf,
  presentParts,
} from '#core/credential/mdoc/testing/documents.ts';
import { jwkThumbprint } from '#core/crypto/signature-key.ts';
import { type Fixture, openFixture } from '../../testing/fixture.ts';
import { issuingCertificate } from '../../testing/issuing-certificates.ts';
import { Presenter, type ReadRequest, responseUriOf } from '../../testing/presenter.ts';
import { TestWallet, type WalletKey, walletKey } from '../../testing/wallet.ts';

const docType = 'org.iso.18013.5.1.mDL';
const nameSpace = 'org.iso.18013.5.1';
const claims = { [nameSpace]: { family_name: 'Müller', height: 181, birth_date: '1990-02-28' } };

let fixture: Fixture;
let presenter: Presenter;
let wallet: TestWallet;

beforeAll(async () => {
  fixture = await openFixture('credential_mdoc');
  presenter = new Presenter(fixture);
  wallet = new TestWallet(fixture);
});

afterAll(() => fixture.close());

const offer = { format: 'mso_mdoc', doctype: docType, credentialType: 'Driving licence', claims };

async function proofKey({ privateJwk, jwk }: DeviceKeys): Promise<WalletKey> {
  const privateKey = await importJWK({ ...privateJwk }, 'ES256');
  if (privateKey instanceof Uint8Array) throw new Error('no key pair');
  return { alg: 'ES256', privateKey, jwk: { ...jwk }, thumbprint: await calculateJwkThumbprint({ ...jwk }) };
}

/** A document in the hands of its holder. */
async function hold(change: Readonly<Record<string, unknown>> = {}) {
  const device = deviceKeys();
  const { answer, offer: made } = await wallet.issued(await proofKey(device), { ...offer, ...change });
  expect(answer.statusCode).toBe(200);
  return { device, parts: partsOf(answer.json().credentials[0].credential), offerId: String(made.offerId) };
}

type Held = Awaited<ReturnType<typeof hold>>;

const query = { credentialType: docType, format: 'mso_mdoc', requiredClaims: [`${nameSpace}/family_name`] };

function sessionOf(requestId: string, request: ReadRequest) {
  const [key] = request.client_metadata.jwks?.keys ?? [];
  return {
    clientId: request.client_id,
    nonce: request.nonce,
    responseUri: responseUriOf(requestId),
    encryptionKeyThumbprint:
      key === undefined
        ? undefined
        : jwkThumbprint({ kty: key['kty'], crv: key['crv'], x: key['x'], y: key['y'] }),
  };
}

async function verified({ device, parts }: Held, ask: Readonly<Record<string, unknown>> = {}, session = {}) {
  const { requestId, request } = await presenter.asked({ ...query, ...ask });
  const response = presentParts(parts, device, {
    docType,
    session: { ...sessionOf(requestId, request), ...session },
  });
  const answer = await presenter.answer(requestId, request, { credential: [response] });
  expect(answer.statusCode).toBe(200);
  return (await presenter.result(requestId)).json();
}

const codes = ({ result }: { result: { errors: { code: string }[] } }) =>
  result.errors.map(({ code }) => code);

describe('a document (mdoc)', () => {
  test.each(['direct_post', 'direct_post.jwt'])('is issued, and verified by %s', async (responseMode) => {
    expect(await verified(await hold(), { responseMode })).toMatchObject({
      state: 'Verified',
      result: {
        verifiedClaims: { [nameSpace]: { family_name: 'Müller' } },
        holderKeyVerified: true,
        x5cChainValid: true,
        statusCheckResult: 'Valid',
      },
    });
  });

  test('is listed with its type and algorithms', async () => {
    await hold();
    const { credential_configurations_supported: all } = (
      await fixture.app.inject({ url: '/.well-known/openid-credential-issuer' })
    ).json();
    expect(all['org-iso-18013-5-1-mdl']).toMatchObject({
      format: 'mso_mdoc',
      doctype: docType,
      cryptographic_binding_methods_supported: ['cose_key'],
      credential_signing_alg_values_supported: [-7],
      proof_types_supported: { jwt: { proof_signing_alg_values_supported: ['ES256'] } },
    });
  });

  test.each([
    ['of another nonce', { nonce: 'other' }],
    ['for another verifier', { clientId: 'x509_san_dns:other.test' }],
    ['for another address', { responseUri: 'https://other.test/response' }],
    ['as if it was encrypted', { encryptionKeyThumbprint: Buffer.alloc(32) }],
  ])('is refused in a session %s', async (_, session) => {
    expect(codes(await verified(await hold(), {}, session))).toEqual(['KB_SIGNATURE']);
  });

  test('is refused with the key of another device, or with an element of another document', async () => {
    const [one, other] = [await hold(), await hold()];
    expect(codes(await verified({ ...one, device: other.device }))).toEqual(['KB_SIGNATURE']);
    const mixed = { ...one.parts, items: other.parts.items };
    expect(codes(await verified({ ...one, parts: mixed }))).toEqual(['DIGEST']);
  });

  test('is refused when it is of another type, or revoked', async () => {
    const one = await hold();
    expect(codes(await verified(one, { credentialType: 'org.test.other' }))).toEqual(['VCT_MISMATCH']);
    const state = await fixture.app.inject({
      url: `/api/v1/offers/${one.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    await fixture.app.inject({
      method: 'POST',
      url: `/api/v1/credentials/${state.json().credentialIds[0]}/revoke`,
      headers: { authorization: 'Bearer service' },
      payload: { reason: 'test' },
    });
    expect(codes(await verified(one))).toEqual(['STATUS_REVOKED']);
  });

  test('is bound to keys on P-256 alone', async () => {
    const { accessToken, configurationId } = await wallet.accepted(offer);
    const proof = await wallet.proof(await walletKey('EdDSA'));
    const body = { credential_configuration_id: configurationId, proofs: { jwt: [proof] } };
    expect((await wallet.credential(accessToken, body)).json().error).toBe('invalid_proof');
  });
});

describe('a document under a certificate of another purpose', () => {
  const kept = () => fixture.organization.certificate;
  let before: ReturnType<typeof kept>;
  beforeEach(async () => {
    before = kept();
    fixture.organization.certificate = await issuingCertificate('issuer.test', fixture.clock.nowMs(), {
      purposes: ['1.3.6.1.5.5.7.3.4'],
    });
  });

  test('is refused', async () => {
    const trustPolicy = { sources: [{ kind: 'x509-tenant' }] };
    const found = await verified(await hold({ statusList: false }), { trustPolicy });
    fixture.organization.certificate = before;
    expect(codes(found)).toEqual(['TRUST_CHAIN_INVALID']);
  });
});
