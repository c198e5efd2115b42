import { verify, X509Certificate } from 'node:crypto';
import { gunzipSync, inflateSync } from 'node:zlib';
import { cborDecode } from '@owf/mdoc';
import { compactVerify, importX509 } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parseCoseSign1, signedBytes } from '#core/credential/mdoc/cose.ts';
import { readCbor } from '#core/encoding/cbor.ts';
import { refusal } from '../errors.ts';
import { LIST_SIZE } from '../protocol/statuses.ts';
import { caller, type Fixture, issuerUrl, openFixture } from '../testing/fixture.ts';
import { decodeSdJwt, TestWallet, walletKey } from '../testing/wallet.ts';

let fixture: Fixture;
let wallet: TestWallet;

beforeAll(async () => {
  fixture = await openFixture('credential_status');
  wallet = new TestWallet(fixture);
  const { organizationId } = fixture.organization;
  fixture.callers
    .set('Bearer admin', caller({ organizationId, roles: ['Administrator'] }))
    .set('Bearer member', caller({ organizationId, roles: ['User'] }))
    .set('Bearer stranger', caller({ organizationId: 'other', roles: ['Administrator'] }));
});

afterAll(() => fixture.close());

/** A credential, its id and its place. */
async function issued() {
  const { answer, offer } = await wallet.issued(await walletKey());
  const { payload } = decodeSdJwt(answer.json().credentials[0].credential);
  const state = await fixture.app.inject({
    url: `/api/v1/offers/${offer.offerId}`,
    headers: { authorization: 'Bearer service' },
  });
  const { idx, uri } = payload.status.status_list;
  return { id: String(state.json().credentialIds[0]), idx: Number(idx), uri: String(uri) };
}

const change = (id: string, verb: string, by = 'admin') =>
  fixture.app.inject({
    method: 'POST',
    url: `/api/v1/credentials/${id}/${verb}`,
    headers: { authorization: `Bearer ${by}` },
    payload: { reason: 'test' },
  });

const read = (uri: string) => fixture.app.inject({ url: uri.slice(issuerUrl.length) });

/** The status that a reader of the draft finds: entries of two bits, the least significant ones first. */
async function statusIn(uri: string, index: number): Promise<number> {
  const token = (await read(uri)).body;
  const { status_list: list } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const bytes = inflateSync(Buffer.from(list.lst, 'base64url'));
  expect(bytes.length).toBe((LIST_SIZE * list.bits) / 8);
  return ((bytes[Math.floor(index / 4)] ?? 0) >> ((index % 4) * 2)) & 3;
}

describe('a status list', () => {
  test('is a signed token whose subject is its address', async () => {
    const { uri } = await issued();
    const answer = await read(uri);
    expect(answer.headers['content-type']).toBe('application/statuslist+jwt');
    const [header = '', payload = ''] = answer.body
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString());
    const { x5c, ...named } = JSON.parse(header);
    expect(named).toEqual({ alg: 'ES256', typ: 'statuslist+jwt' });
    const pem = `-----BEGIN CERTIFICATE-----\n${x5c[0]}\n-----END CERTIFICATE-----`;
    await compactVerify(answer.body, await importX509(pem, 'ES256'));
    expect(JSON.parse(payload)).toMatchObject({
      sub: uri,
      iss: issuerUrl,
      iat: wallet.nowSeconds,
      exp: wallet.nowSeconds + 86_400,
      ttl: 60,
      status_list: { bits: 2, lst: expect.any(String) },
    });
  });

  test('is signed anew when half of its life is over, and not before', async () => {
    const { uri } = await issued();
    const first = (await read(uri)).body;
    fixture.clock.advance(43_199_000);
    expect((await read(uri)).body).toBe(first);
    fixture.clock.advance(1_000);
    expect((await read(uri)).body).not.toBe(first);
  });

  test('is served from what was signed while no signature can be had', async () => {
    const { uri, id } = await issued();
    const kept = (await read(uri)).body;
    fixture.outage.sign = refusal('WALLETS_UNAVAILABLE');
    expect((await read(uri)).body).toBe(kept);
    await change(id, 'revoke');
    // The list that does not show the revocation is not served.
    expect((await read(uri)).statusCode).toBe(503);
    delete fixture.outage.sign;
    expect((await read(uri)).statusCode).toBe(200);
  });

  test.each(['', '?purpose=revocation', 'cwt'])(
    'is signed once for fifty readers at one time after a change: %s',
    async (form) => {
      const { uri, id } = await issued();
      await change(id, 'revoke');
      const listId = uri.slice(uri.lastIndexOf('/') + 1);
      const url = form.startsWith('?')
        ? `/api/v1/credentials/status-lists/${listId}${form}`
        : `/api/v1/credentials/ietf-status-lists/${listId}`;
      const headers = { accept: form === 'cwt' ? 'application/statuslist+cwt' : '*/*' };
      const sign = vi.spyOn(fixture.deps.issuers, 'sign');
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => fixture.app.inject({ url, headers })),
      );
      expect(sign).toHaveBeenCalledTimes(1);
      sign.mockRestore();
      const [first] = answers;
      expect(first?.statusCode).toBe(200);
      expect(answers.every(({ rawPayload }) => rawPayload.equals(first?.rawPayload ?? Buffer.alloc(0)))).toBe(
        true,
      );
    },
  );

  test('is a CWT where a reader asks for it, signed by the same key', async () => {
    const { uri, id, idx } = await issued();
    await change(id, 'suspend');
    const url = uri.slice(issuerUrl.length);
    const answer = await fixture.app.inject({ url, headers: { accept: 'application/statuslist+cwt' } });
    expect(answer.headers['content-type']).toBe('application/statuslist+cwt');
    const bytes = answer.rawPayload;
    // Tag 18, COSE_Sign1.
    expect(bytes[0]).toBe(0xd2);
    const sign1 = parseCoseSign1(readCbor(bytes.subarray(1)), 'the token');
    const [leaf = new Uint8Array()] = sign1.x5chain;
    const { publicKey } = new X509Certificate(leaf);
    const signed = signedBytes(sign1.protectedHeader, sign1.payload ?? new Uint8Array());
    expect(verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, sign1.signature)).toBe(
      true,
    );
    const claims = cborDecode<Map<number, unknown>>(sign1.payload ?? new Uint8Array());
    const list = claims.get(65533);
    if (!(list instanceof Map)) throw new Error('the claim is no map');
    expect([claims.get(2), claims.get(65534), list.get('bits')]).toEqual([uri, 60, 2]);
    const statuses = inflateSync(list.get('lst'));
    expect(((statuses[Math.floor(idx / 4)] ?? 0) >> ((idx % 4) * 2)) & 3).toBe(2);
  });

  test('is a bitstring of the W3C for each purpose, the most significant bit first', async () => {
    const { uri, id, idx } = await issued();
    const bitOf = async (purpose: string) => {
      const listId = uri.slice(uri.lastIndexOf('/') + 1);
      const url = `/api/v1/credentials/status-lists/${listId}?purpose=${purpose}`;
      const answer = await fixture.app.inject({ url });
      expect(answer.headers['content-type']).toBe('application/vc+jwt');
      const [head = '', body = ''] = answer.body
        .split('.')
        .map((part) => Buffer.from(part, 'base64url').toString());
      const pem = `-----BEGIN CERTIFICATE-----\n${JSON.parse(head).x5c[0]}\n-----END CERTIFICATE-----`;
      await compactVerify(answer.body, await importX509(pem, 'ES256'));
      const { credentialSubject } = JSON.parse(body);
      expect(credentialSubject).toMatchObject({ type: 'BitstringStatusList', statusPurpose: purpose });
      const bits = gunzipSync(Buffer.from(credentialSubject.encodedList.slice(1), 'base64url'));
      expect(bits.length * 8).toBe(LIST_SIZE);
      return ((bits[idx >> 3] ?? 0) >> (7 - (idx & 7))) & 1;
    };
    expect([await bitOf('revocation'), await bitOf('suspension')]).toEqual([0, 0]);
    await change(id, 'suspend');
    expect([await bitOf('revocation'), await bitOf('suspension')]).toEqual([0, 1]);
    await change(id, 'revoke');
    expect([await bitOf('revocation'), await bitOf('suspension')]).toEqual([1, 0]);
  });

  test('that is unknown is not found', async () => {
    const unknown = `${issuerUrl}/api/v1/credentials/ietf-status-lists/0190a5b2-7c3d-4e4f-8a1b-2c3d4e5f6a7b`;
    expect((await read(unknown)).statusCode).toBe(404);
  });
});

describe('a credential', () => {
  test('is suspended, reinstated and revoked for good; the list shows it', async () => {
    const { id, idx, uri } = await issued();
    const neighbour = await issued();
    expect(await statusIn(uri, idx)).toBe(0);
    expect((await change(id, 'suspend')).json()).toMatchObject({
      credentialId: id,
      status: 'Suspended',
      index: idx,
    });
    expect(await statusIn(uri, idx)).toBe(2);
    expect((await change(id, 'suspend')).statusCode).toBe(409);
    expect((await change(id, 'reinstate')).json().status).toBe('Active');
    expect(await statusIn(uri, idx)).toBe(0);
    expect((await change(id, 'reinstate')).json().code).toBe('STATUS_TRANSITION');
    expect((await change(id, 'revoke', 'service')).json().status).toBe('Revoked');
    expect(await statusIn(uri, idx)).toBe(1);
    for (const verb of ['reinstate', 'suspend', 'revoke'])
      expect((await change(id, verb)).statusCode).toBe(409);
    expect(await statusIn(neighbour.uri, neighbour.idx)).toBe(0);
  });

  test('of another organisation is not found, nor for members without the role', async () => {
    const { id } = await issued();
    for (const by of ['member', 'stranger']) {
      const answer = await change(id, 'revoke', by);
      expect([answer.statusCode, answer.json().code]).toEqual([404, 'CREDENTIAL_NOT_FOUND']);
    }
    expect((await change(id, 'revoke', 'nobody')).statusCode).toBe(401);
  });

  test('without a status cannot be revoked', async () => {
    const { offer } = await wallet.issued(await walletKey(), { statusList: false });
    const state = await fixture.app.inject({
      url: `/api/v1/offers/${offer.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    const answer = await change(state.json().credentialIds[0], 'revoke');
    expect(answer.json().code).toBe('CREDENTIAL_WITHOUT_STATUS');
  });

  test('that is suspended or revoked cannot be taken again with the token of its offer', async () => {
    const { answer: first, offer, accessToken, configurationId } = await wallet.issued(await walletKey());
    expect(first.statusCode).toBe(200);
    const state = async () =>
      (
        await fixture.app.inject({
          url: `/api/v1/offers/${offer.offerId}`,
          headers: { authorization: 'Bearer service' },
        })
      ).json();
    const again = async () => {
      const jwt = [await wallet.proof(await walletKey())];
      const body = { credential_configuration_id: configurationId, proofs: { jwt } };
      const answer = await wallet.credential(accessToken, body);
      return [answer.statusCode, answer.json().error];
    };
    const [id = ''] = (await state()).credentialIds;
    await change(id, 'suspend');
    expect(await again()).toEqual([400, 'credential_request_denied']);
    await change(id, 'reinstate');
    expect(await again()).toEqual([200, undefined]);
    await change(id, 'revoke');
    expect(await again()).toEqual([401, 'invalid_token']);
    expect((await state()).credentialIds).toHaveLength(2);
  });

  test('that is revoked while copies are issued has none afterwards', async () => {
    const { offer, accessToken, configurationId } = await wallet.issued(await walletKey());
    const state = await fixture.app.inject({
      url: `/api/v1/offers/${offer.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    const proofs = await Promise.all(
      Array.from({ length: 6 }, async () => ({ jwt: [await wallet.proof(await walletKey())] })),
    );
    const take = (one: object) =>
      wallet.credential(accessToken, { credential_configuration_id: configurationId, proofs: one });
    const revoked = change(state.json().credentialIds[0], 'revoke');
    const answers = await Promise.all(proofs.map(take));
    expect((await revoked).statusCode).toBe(200);
    for (const { statusCode } of answers) expect([200, 400, 401]).toContain(statusCode);
    expect((await take({ jwt: [await wallet.proof(await walletKey())] })).statusCode).toBe(401);
  });

  test('is changed once by requests at one time', async () => {
    const { id, idx, uri } = await issued();
    const answers = await Promise.all(Array.from({ length: 8 }, () => change(id, 'revoke')));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(await statusIn(uri, idx)).toBe(1);
  });

  test('changes with others of its list at one time, and none is lost', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, issued));
    await Promise.all(all.map(({ id }) => change(id, 'suspend')));
    for (const { idx, uri } of all) expect(await statusIn(uri, idx)).toBe(2);
  });
});
