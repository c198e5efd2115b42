import { createPublicKey, X509Certificate } from 'node:crypto';
import { Openid4vpVerifier } from '@openid4vc/openid4vp';
import { decodeJwt, exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { parseCertificate } from '#core/trust/certificate.ts';
import { CredentialStatus } from '#protos/gen/chancery/credential/v1/holder_pb.js';
import { type Fixture, openFixture } from '../testing/fixture.ts';
import { issuingCertificate } from '../testing/issuing-certificates.ts';
import { type Held, Presenter } from '../testing/presenter.ts';
import { readIdentity, type VerifierIdentity } from '../verifier/identity/identity.ts';
import { judgeIssuer } from './judge-issuer.ts';
import { resolveRequest } from './resolve-request.ts';
import { holderHandlers, mayJudgeForHolders } from './rpc.ts';

let fixture: Fixture;
let presenter: Presenter;
let held: Held;

beforeAll(async () => {
  fixture = await openFixture('credential_holder');
  presenter = new Presenter(fixture);
  held = await presenter.hold();
});

afterAll(() => fixture.close());

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (isAppError(error) ? error.code : String(error)),
  );

const anchorOf = (pem: string) => parseCertificate(new X509Certificate(pem).raw);

test('is for the wallet service', () => {
  const of = (clientId: string) => mayJudgeForHolders({ clientId, spiffeId: `spiffe://x/${clientId}` });
  expect([of('service-wallet'), of('service-blueprint')]).toEqual([true, false]);
});

describe('the issuer of a credential', () => {
  const claimOf = (compact: string) => {
    const { status } = decodeJwt<{ status: { status_list: { idx: number; uri: string } } }>(
      compact.split('~', 1)[0] ?? '',
    );
    const { idx: index, uri } = status.status_list;
    const [leaf] = fixture.organization.certificate.chain;
    if (leaf === undefined) throw new Error('no chain');
    return { certificates: [leaf], keyId: '', isDocument: false, status: { index, uri } };
  };

  test('is trusted by the authority of the organisation, and its list says the status', async () => {
    const claim = claimOf(held.compact);
    const judged = await judgeIssuer(fixture.deps, claim);
    expect(judged).toMatchObject({ isTrusted: true, reason: '', status: 'Valid' });
    expect(Buffer.from(judged.publicKey)).toEqual(
      new X509Certificate(claim.certificates[0] ?? '').publicKey.export({ type: 'spki', format: 'der' }),
    );
    const url = `/api/v1/credentials/${held.credentialId}`;
    const headers = { authorization: 'Bearer service' };
    const change = (act: string) =>
      fixture.app.inject({ method: 'POST', url: `${url}/${act}`, headers, payload: { reason: 'test' } });
    expect((await change('suspend')).statusCode).toBe(200);
    const { judgeIssuer: answer } = holderHandlers(fixture.deps);
    const request = { certificates: claim.certificates, keyId: '', document: false };
    const status = { uri: claim.status.uri, index: BigInt(claim.status.index) };
    expect(await Reflect.apply(answer, undefined, [{ ...request, status }, {}])).toMatchObject({
      trusted: true,
      status: CredentialStatus.SUSPENDED,
    });
    expect((await change('reinstate')).statusCode).toBe(200);
  });

  test('is trusted by its DID, and by any list that has its authority', async () => {
    const keyId = `did:platform:org:${fixture.organization.walletAddress}#key-1`;
    const byDid = { certificates: [], keyId, isDocument: false, status: undefined };
    expect(await judgeIssuer(fixture.deps, byDid)).toMatchObject({ isTrusted: true, status: 'NotPresent' });
    const other = await issuingCertificate('other.test', fixture.clock.nowMs());
    const claim = { ...byDid, certificates: other.chain, keyId: '' };
    expect(await judgeIssuer(fixture.deps, claim)).toMatchObject({ isTrusted: false, status: undefined });
    const snapshot = { sequenceNumber: 7, issuedAtMs: 0, nextUpdateMs: undefined };
    const listed = { ...snapshot, anchors: [anchorOf(other.rootPem)] };
    fixture.trustLists.set('eu', { snapshot: listed, isStrict: true });
    expect(await judgeIssuer(fixture.deps, claim)).toMatchObject({ isTrusted: true, reason: '' });
    // An authority of the same name with another key vouches for none.
    const false_ = await issuingCertificate('other.test', fixture.clock.nowMs());
    expect(await judgeIssuer(fixture.deps, { ...claim, certificates: false_.chain })).toMatchObject({
      isTrusted: false,
    });
    fixture.trustLists.clear();
  });

  test('that is not trusted names no address that is asked', async () => {
    const other = await issuingCertificate('other.test', fixture.clock.nowMs());
    const uri = 'https://other.test/status/1';
    const before = fixture.fetched.length;
    const judged = await judgeIssuer(fixture.deps, {
      certificates: other.chain,
      keyId: '',
      isDocument: false,
      status: { uri, index: 1 },
    });
    expect(judged.status).toBeUndefined();
    expect(fixture.fetched.slice(before)).toEqual([]);
  });

  test('has no key where the header names none, or no certificate', async () => {
    const nothing = { certificates: [], keyId: '', isDocument: false, status: undefined };
    for (const claim of [nothing, { ...nothing, certificates: [Buffer.from('none')] }]) {
      expect(await judgeIssuer(fixture.deps, claim)).toMatchObject({ publicKey: new Uint8Array() });
    }
    const purposes = await issuingCertificate('other.test', fixture.clock.nowMs(), {
      purposes: ['1.3.6.1.5.5.7.3.2'],
    });
    fixture.organization.certificate = purposes;
    const document = { ...nothing, certificates: purposes.chain, isDocument: true };
    expect(await judgeIssuer(fixture.deps, document)).toMatchObject({ isTrusted: false });
  });

  test('cannot be judged while the tenant service is away', async () => {
    fixture.outage.anchor = Object.assign(new Error('away'), {});
    const [leaf] = fixture.organization.certificate.chain;
    const claim = { certificates: leaf ? [leaf] : [], keyId: '', isDocument: false, status: undefined };
    await expect(judgeIssuer(fixture.deps, claim)).rejects.toThrow('away');
    delete fixture.outage.anchor;
  });
});

describe('a request of a verifier', () => {
  async function verifier(host: string, options: { listUri?: string } = {}) {
    const made = await issuingCertificate(host, fixture.clock.nowMs(), options);
    const key = made.privateKey.export({ format: 'pem', type: 'pkcs8' });
    const leaf = Buffer.from(made.chain[0] ?? []).toString('base64');
    const pem = `${key}-----BEGIN CERTIFICATE-----\n${leaf}\n-----END CERTIFICATE-----\n`;
    const rules = { host, mayBeSelfSigned: false, nowMs: fixture.clock.nowMs() };
    return { ...made, identity: readIdentity(Buffer.from(pem), rules) };
  }

  const query = { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:x'] } }] };
  const termsOf = (host: string, change: object = {}) => ({
    response_type: 'vp_token',
    response_mode: 'direct_post.jwt',
    response_uri: `https://${host}/answers`,
    client_id: `x509_san_dns:${host}`,
    nonce: 'n',
    dcql_query: query,
    ...change,
  });
  const objectOf = (identity: VerifierIdentity, change: object = {}) =>
    identity.sign('oauth-authz-req+jwt', termsOf(identity.host, change));
  const uriOf = (parameters: Record<string, string>) =>
    `openid4vp://?${new URLSearchParams(parameters).toString()}`;

  test('of this installation is read where it is stored, without a request', async () => {
    const { authorizationRequestUri, requestUri } = (await presenter.ask()).json();
    const before = fixture.fetched.length;
    for (const address of [
      authorizationRequestUri,
      requestUri,
      `${authorizationRequestUri}&request_uri_method=post`,
    ]) {
      expect(await resolveRequest(fixture.deps, { requestUri: address })).toMatchObject({
        clientId: 'x509_san_dns:issuer.test',
        host: 'issuer.test',
        auth: { state: 'AuthenticUntrusted', reason: 'TRUST_CHAIN_INVALID' },
      });
    }
    expect(fixture.fetched.slice(before)).toEqual([]);
    fixture.clock.advance(301_000);
    expect(await codeOf(resolveRequest(fixture.deps, { requestUri }))).toBe('REQUEST_UNREACHABLE');
  });

  test('is believed by the settings and by a list, else is shown as authentic', async () => {
    const { identity, rootPem } = await verifier('verifier.test');
    const requestObject = objectOf(identity);
    const authOf = async (deps: typeof fixture.deps) => (await resolveRequest(deps, { requestObject })).auth;
    expect(await authOf(fixture.deps)).toEqual({
      state: 'AuthenticUntrusted',
      reason: 'TRUST_ISSUER_NOT_LISTED',
    });
    const verifierAuthorities = [anchorOf(rootPem)];
    expect(await authOf({ ...fixture.deps, verifierAuthorities })).toEqual({
      state: 'TrustedListVerified',
      anchorSetId: 'configured',
    });
    const snapshot = { sequenceNumber: 3, issuedAtMs: 0, nextUpdateMs: undefined };
    fixture.trustLists.set('rp', {
      snapshot: { ...snapshot, anchors: [anchorOf(rootPem)] },
      isStrict: true,
    });
    expect(await authOf(fixture.deps)).toEqual({ state: 'TrustedListVerified', anchorSetId: 'rp#3' });
    const later = {
      ...fixture.deps,
      clock: { ...fixture.clock, nowMs: () => fixture.clock.nowMs() + 40 * 86_400_000 },
    };
    expect(await authOf(later)).toMatchObject({ state: 'AuthenticUntrusted', reason: 'TRUST_CERT_EXPIRED' });
    fixture.trustLists.clear();
  });

  test('is not believed once its certificate is revoked, or while that cannot be learnt', async () => {
    const listUri = 'http://authority.test/verifiers.crl';
    const { identity, rootPem, revocationList } = await verifier('verifier.test', { listUri });
    const requestObject = objectOf(identity);
    const authOf = async (verifierAuthorities: ReturnType<typeof anchorOf>[]) =>
      (await resolveRequest({ ...fixture.deps, verifierAuthorities }, { requestObject })).auth;
    const anchors = [anchorOf(rootPem)];
    const nowMs = fixture.clock.nowMs();
    expect(await authOf([])).toMatchObject({ reason: 'TRUST_ISSUER_NOT_LISTED' });
    // The authority is not trusted: its address is not asked.
    expect(fixture.fetched).not.toContain(listUri);
    expect(await authOf(anchors)).toEqual({ state: 'AuthenticUntrusted', reason: 'TRUST_CRL_UNAVAILABLE' });
    fixture.clock.advance(30_000);
    fixture.elsewhere.set(listUri, await revocationList([], nowMs));
    expect(await authOf(anchors)).toMatchObject({ state: 'TrustedListVerified' });
    fixture.clock.advance(3_600_000);
    fixture.elsewhere.set(listUri, await revocationList(['02'], fixture.clock.nowMs()));
    await fixture.revocations.refreshing().run(new AbortController().signal);
    expect(await authOf(anchors)).toEqual({ state: 'AuthenticUntrusted', reason: 'TRUST_CERT_REVOKED' });
  });

  test('is fetched once, by the address in its URI, and is that of the client id in the URI', async () => {
    const { identity } = await verifier('verifier.test');
    const address = 'https://verifier.test/requests/1';
    fixture.elsewhere.set(address, Buffer.from(objectOf(identity)));
    const before = fixture.fetched.length;
    const clientId = 'x509_san_dns:verifier.test';
    const resolved = await resolveRequest(fixture.deps, {
      requestUri: uriOf({ client_id: clientId, request_uri: address }),
    });
    expect(resolved).toMatchObject({ clientId, responseMode: 'direct_post.jwt', query, state: undefined });
    expect(fixture.fetched.slice(before)).toEqual([address]);
    const otherId = 'x509_san_dns:other.test';
    for (const source of [
      { requestUri: uriOf({ client_id: otherId, request_uri: address }) },
      { requestUri: uriOf({ client_id: clientId, request_uri: address }), clientId: otherId },
      { requestUri: address, clientId: otherId },
    ]) {
      expect(await codeOf(resolveRequest(fixture.deps, source))).toBe('REQUEST_OBJECT_INVALID');
    }
    expect(await codeOf(resolveRequest(fixture.deps, { requestUri: 'https://absent.test/' }))).toBe(
      'REQUEST_UNREACHABLE',
    );
  });

  test('is refused when it is changed, names another host, or asks what cannot be read', async () => {
    const { identity } = await verifier('verifier.test');
    const [header, , signature] = objectOf(identity).split('.');
    const changed = Buffer.from(JSON.stringify(termsOf('verifier.test', { nonce: 'm' }))).toString(
      'base64url',
    );
    for (const [requestObject, code] of [
      [`${header}.${changed}.${signature}`, 'REQUEST_OBJECT_INVALID'],
      [objectOf(identity, { response_uri: 'https://evil.test/' }), 'REQUEST_HOST_MISMATCH'],
      [objectOf(identity, { dcql_query: { credentials: [] } }), 'DCQL_INVALID'],
    ] as const) {
      expect(await codeOf(resolveRequest(fixture.deps, { requestObject }))).toBe(code);
    }
    for (const requestUri of ['', 'no address', 'openid4vp://?client_id=x', uriOf({ request_uri: 'x' })])
      expect(await codeOf(resolveRequest(fixture.deps, { requestUri })), requestUri).toBe(
        'REQUEST_OBJECT_INVALID',
      );
  });

  test('that a library of another maker wrote is read', async () => {
    const { chain, privateKey } = await issuingCertificate('verifier.test', fixture.clock.nowMs());
    const x5c = chain.map((der) => Buffer.from(der).toString('base64'));
    const nowSeconds = Math.floor(fixture.clock.nowMs() / 1000);
    const requestUri = 'https://verifier.test/requests/2';
    const never = () => Promise.reject(new Error('not called'));
    const library = new Openid4vpVerifier({
      callbacks: {
        signJwt: async (_signer, { header: { alg, typ = '' }, payload }) => ({
          jwt: await new SignJWT(JSON.parse(JSON.stringify(payload)))
            .setProtectedHeader({ alg, typ, x5c })
            .setIssuedAt(nowSeconds)
            .setExpirationTime(nowSeconds + 300)
            .sign(privateKey),
          signerJwk: { kty: 'EC', ...(await exportJWK(createPublicKey(privateKey))) },
        }),
        hash: never,
        decryptJwe: never,
        verifyJwt: never,
        encryptJwe: never,
      },
    });
    const made = await library.createOpenId4vpAuthorizationRequest({
      authorizationRequestPayload: {
        response_type: 'vp_token',
        response_mode: 'direct_post',
        response_uri: 'https://verifier.test/answers',
        client_id: 'x509_san_dns:verifier.test',
        nonce: 'n-0S6',
        dcql_query: query,
      },
      jar: { jwtSigner: { method: 'x5c', x5c, alg: 'ES256' }, requestUri, expiresInSeconds: 300 },
    });
    const requestObject = made.jar?.authorizationRequestJwt ?? '';
    fixture.elsewhere.set(requestUri, Buffer.from(requestObject));
    expect(await resolveRequest(fixture.deps, { requestUri: made.authorizationRequest })).toMatchObject({
      clientId: 'x509_san_dns:verifier.test',
      host: 'verifier.test',
      query,
    });
  });

  test('without a certificate is shown as not verifiable', async () => {
    const unsigned = [{ alg: 'none', typ: 'oauth-authz-req+jwt' }, termsOf('v.test', { client_id: 'v' })]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const { resolveRequest: answer } = holderHandlers(fixture.deps);
    const source = { case: 'requestObject', value: `${unsigned}.` };
    expect(await Reflect.apply(answer, undefined, [{ source, clientId: '' }, {}])).toMatchObject({
      clientId: 'v',
      verifierHost: 'v.test',
      authState: 3,
      anchorSetId: '',
      reason: 'REQUEST_NOT_CERTIFIED',
      dcqlQuery: JSON.stringify(query),
    });
  });
});
