import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { type Certificate, parseCertificate } from '#core/trust/certificate.ts';
import { allowsKeyUsage, basicConstraintsOf, KEY_USAGE } from '#core/trust/extensions.ts';
import { validatePath } from '#core/trust/path.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { findRoot } from '../authority/store.ts';
import { hasOpenSsl, openSsl, publicHost, startTrustTenant, type TrustTenant } from '../trust.fixture.ts';
import { enrol } from './enrol.ts';

let trust: TrustTenant;
beforeAll(async () => {
  trust = await startTrustTenant('tenant_enrol');
});
afterAll(() => trust.tenant.stop());

const dayMs = 86_400_000;

const callerOf = (token: string) => trust.tenant.authenticator.authenticate(token);

describe('enrolment', () => {
  it('issues a leaf below a root of its own, with the name, the host and the list of the organisation', async () => {
    const { acme, call } = trust;
    expect((await call('GET', `${acme.tenantPath}/trust-anchor`)).status).toBe(404);
    const { status, body } = await call('POST', `${acme.path}/enrol`, { token: acme.token, body: {} });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      provenance: 'Internal',
      status: 'Active',
      boundKeySource: 'Primary',
      san: [`URI:did:platform:org:${acme.wallet.address}`, `DNS:${publicHost}`],
    });
    expect(body.chain).toHaveLength(2);
    const anchor = await call('GET', `${acme.tenantPath}/trust-anchor`);
    expect([anchor.status, anchor.type]).toEqual([200, 'application/pkix-cert']);
    const root = new X509Certificate(anchor.bytes);
    const { chain } = (await call('GET', `${acme.path}/cert-chain`)).body;
    expect(chain).toHaveLength(1);
    const leaf = new X509Certificate(Buffer.from(chain[0], 'base64'));
    expect([root.ca, root.verify(root.publicKey), root.checkIssued(root)]).toEqual([true, true, true]);
    expect([leaf.ca, leaf.checkIssued(root), leaf.verify(root.publicKey)]).toEqual([false, true, true]);
    expect(leaf.publicKey.export({ format: 'der', type: 'spki' })).toEqual(
      Buffer.from(acme.wallet.keys.issuer.publicKey),
    );
    expect(root.publicKey.export({ format: 'der', type: 'spki' })).toEqual(
      Buffer.from(acme.wallet.keys.root.publicKey),
    );
    expect(leaf.toString()).not.toBe(root.toString());
    const lifeMs = leaf.validToDate.getTime() + 1_000 - leaf.validFromDate.getTime();
    expect(lifeMs).toBe(397 * dayMs);
    const [own, issuer] = [parseCertificate(leaf.raw), parseCertificate(root.raw)];
    for (const { serial } of [own, issuer]) expect(encodeHex(serial)).toMatch(/^[4-7][0-9a-f]{31}$/);
    const path = { path: [own], anchors: [issuer], atMs: trust.tenant.clock.nowMs() };
    expect(validatePath(path).violations).toEqual([]);
    expect(basicConstraintsOf(issuer)).toEqual({ isAuthority: true, pathLength: 0 });
    expect(basicConstraintsOf(own).isAuthority).toBe(false);
    const usagesOf = (each: Certificate) => Object.values(KEY_USAGE).map((bit) => allowsKeyUsage(each, bit));
    expect([usagesOf(own), usagesOf(issuer)]).toEqual([
      [true, false, false],
      [false, true, true],
    ]);
  });

  it('again supersedes the earlier one, keeps the root, and both are listed', async () => {
    const { acme, call } = trust;
    const before = (await call('GET', `${acme.tenantPath}/trust-anchor`)).bytes;
    const again = await call('POST', `${acme.path}/enrol`, { token: acme.token, body: {} });
    expect(again.status).toBe(200);
    expect((await call('GET', `${acme.tenantPath}/trust-anchor`)).bytes).toEqual(before);
    const { body } = await call('GET', `${acme.path}/certificates`, { token: acme.token });
    expect(body.eligibility).toEqual({ eligible: true, reason: null, boundKeySource: 'Primary' });
    expect(body.certificates.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
      [again.body.id, 'Active'],
      [expect.any(String), 'Superseded'],
    ]);
    const audited = await trust.tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'details'])
      .where('organization_id', '=', acme.id)
      .where('event_type', 'in', ['TrustAnchorCreated', 'CertificateEnrolled'])
      .orderBy('id')
      .execute();
    expect(audited.map(({ event_type }) => event_type)).toEqual([
      'TrustAnchorCreated',
      'CertificateEnrolled',
      'CertificateEnrolled',
    ]);
    expect(audited[2]?.details).toMatchObject({
      resourceId: again.body.id,
      walletAddress: acme.wallet.address,
    });
  });

  it('of several requests at one time leaves one certificate in use, and one root', async () => {
    const party = await trust.makeParty('Contended', 'contended');
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        trust.call('POST', `${party.path}/enrol`, { token: party.token, body: {} }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const { certificates } = (await trust.call('GET', `${party.path}/certificates`, { token: party.token }))
      .body;
    expect(certificates.filter(({ status }: { status: string }) => status === 'Active')).toHaveLength(1);
    expect(
      new Set(certificates.map((each: { chain: unknown[] }) => JSON.stringify(each.chain[1]))).size,
    ).toBe(1);
  });

  it('is for administrators of the organisation, and for its own wallet', async () => {
    const { acme, other, system, call } = trust;
    const url = `${acme.path}/enrol`;
    const refusedOf = async (token: string | undefined, path = url) => {
      const { status, body } = await call('POST', path, { ...(token !== undefined && { token }), body: {} });
      return [status, body.code];
    };
    expect(await refusedOf(undefined)).toEqual([401, 'UNAUTHORIZED']);
    expect(await refusedOf(acme.member)).toEqual([403, 'FORBIDDEN']);
    expect(await refusedOf(other.token)).toEqual([403, 'FOREIGN_ORGANIZATION']);
    const foreign = `${other.tenantPath}/orgs/${acme.wallet.address}/enrol`;
    expect(await refusedOf(other.token, foreign)).toEqual([404, 'WALLET_NOT_FOUND']);
    expect(await refusedOf(system, foreign)).toEqual([404, 'WALLET_NOT_FOUND']);
    const unknown = '/api/v1/trust/tenants/00000000-0000-4000-8000-000000000000';
    expect(await refusedOf(system, `${unknown}/orgs/${acme.wallet.address}/enrol`)).toEqual([
      404,
      'ORGANIZATION_NOT_FOUND',
    ]);
    expect(
      (await call('POST', `${acme.tenantPath}/orgs/w1nothing/enrol`, { token: acme.token })).status,
    ).toBe(404);
    for (const [method, path] of [
      ['GET', `${acme.path}/certificates`],
      ['POST', `${acme.path}/csr`],
      ['POST', `${acme.path}/revoke`],
      ['POST', `${acme.tenantPath}/provision`],
      ['DELETE', `${acme.path}/certificates/00000000-0000-4000-8000-000000000000`],
    ] as const) {
      const body = method === 'POST' ? { body: { reason: 'none' } } : {};
      expect((await call(method, path, { token: other.token, ...body })).body.code, path).toBe(
        'FOREIGN_ORGANIZATION',
      );
      expect((await call(method, path, { token: acme.member, ...body })).status, path).toBe(403);
      expect((await call(method, path, body)).status, path).toBe(401);
    }
  });

  it('refuses a wallet without a key, a locked one, and stores nothing while the wallet service is away or lies', async () => {
    const party = await trust.makeParty('Refused', 'refused');
    const { keys, call } = trust;
    const enrol = () => call('POST', `${party.path}/enrol`, { token: party.token, body: {} });
    const list = () => call('GET', `${party.path}/certificates`, { token: party.token });
    for (const [state, status, code] of [
      ['ineligible', 422, 'CERT_KEY_NOT_ELIGIBLE'],
      ['locked', 423, 'WALLET_LOCKED'],
    ] as const) {
      party.wallet.state = state;
      const refused = await enrol();
      expect([refused.status, refused.body.code]).toEqual([status, code]);
      expect(refused.type).toContain('application/problem+json');
      expect((await list()).body).toEqual({
        certificates: [],
        eligibility: { eligible: false, reason: code, boundKeySource: null },
      });
    }
    party.wallet.state = 'usable';
    keys.forge = (_use, digest) => Buffer.from(party.wallet.keys.issuer.signDigest(digest));
    expect([(await enrol()).body.code, keys.signed > 0]).toEqual(['WALLETS_UNAVAILABLE', true]);
    keys.forge = undefined;
    keys.isDown = true;
    expect((await enrol()).body.code).toBe('WALLETS_UNAVAILABLE');
    expect((await list()).status).toBe(503);
    keys.isDown = false;
    expect((await list()).body.certificates).toEqual([]);
    expect((await call('GET', `${party.tenantPath}/trust-anchor`)).body.code).toBe('TRUST_ANCHOR_NOT_FOUND');
  });

  it('renews a root that is about to end, under the same name and key', async () => {
    const party = await trust.makeParty('Renewed', 'renewed');
    const { call, tenant } = trust;
    const provision = async () =>
      (await call('POST', `${party.tenantPath}/provision`, { token: party.token })).body;
    const endsAt = (ms: number) =>
      tenant.db.transact((tx) =>
        tx
          .updateTable('organization_roots')
          .set({ not_after: new Date(ms) })
          .where('organization_id', '=', party.id)
          .execute(),
      );
    const first = await provision();
    await endsAt(tenant.clock.nowMs() + 31 * dayMs);
    expect((await provision()).thumbprint).toBe(first.thumbprint);
    await endsAt(tenant.clock.nowMs() + 29 * dayMs);
    const renewed = await provision();
    expect(renewed.thumbprint).not.toBe(first.thumbprint);
    expect(renewed.subjectDn).toBe(first.subjectDn);
  });

  it('ends no leaf after its root', async () => {
    const party = await trust.makeParty('Late', 'late');
    const { tenant } = trust;
    const caller = await callerOf(party.token);
    const change = { organization: { id: party.id, name: 'Late' }, caller, origin: {} };
    const clock = manualClock(tenant.clock.nowMs());
    const deps = { ...tenant.deps.trust, clock };
    await enrol(deps, party.wallet.address, change);
    const root = await findRoot(tenant.db.read, party.id);
    clock.advance(3_650 * dayMs - 31 * dayMs);
    const late = await enrol(deps, party.wallet.address, change);
    expect(late.rootId).toBe(root?.id);
    expect(late.notAfterMs).toBe(root?.notAfterMs);
    expect(late.notAfterMs - clock.nowMs()).toBeLessThan(40 * dayMs);
  });

  it('names the P-256 key beside an Ed25519 one', async () => {
    const party = await trust.makeParty('Beside', 'beside');
    const wallet = trust.keys.makeWallet(party.id, 'HaipCoKey');
    const path = `${party.tenantPath}/orgs/${wallet.address}`;
    const { body } = await trust.call('POST', `${path}/enrol`, { token: party.token, body: {} });
    expect(body.boundKeySource).toBe('HaipCoKey');
    expect(
      (await trust.call('POST', `${party.path}/enrol`, { token: party.token, body: {} })).body.code,
    ).toBe('WALLET_NOT_FOUND');
  });
});

describe.skipIf(!hasOpenSsl())('enrolment, judged by OpenSSL (skipped without openssl)', () => {
  it('gives a chain that it verifies, with the extensions that are critical', async () => {
    const { acme, call } = trust;
    const ssl = openSsl();
    await call('POST', `${acme.path}/enrol`, { token: acme.token, body: {} });
    const { chain } = (await call('GET', `${acme.path}/cert-chain`)).body;
    ssl.write('leaf.der', Buffer.from(chain[0], 'base64'));
    ssl.write('root.der', (await call('GET', `${acme.tenantPath}/trust-anchor`)).bytes);
    ssl.run('x509', '-inform', 'DER', '-in', 'leaf.der', '-out', 'leaf.pem');
    ssl.run('x509', '-inform', 'DER', '-in', 'root.der', '-out', 'root.pem');
    expect(ssl.run('verify', '-x509_strict', '-CAfile', 'root.pem', 'leaf.pem')).toBe('leaf.pem: OK\n');
    const text = ssl.run('x509', '-in', 'leaf.pem', '-noout', '-text');
    expect(text).toContain(`URI:https://${publicHost}/api/v1/trust/tenants/${acme.id}/crl`);
    expect(text).toMatch(/Key Usage: critical\s+Digital Signature\n/);
    // Those of no authority are an empty sequence, which Multipaz 0.102.0 cannot read.
    expect(text).not.toContain('Basic Constraints');
    const root = ssl.run('x509', '-in', 'root.pem', '-noout', '-text');
    expect(root).toMatch(/Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
    expect(root).toMatch(/Key Usage: critical\s+Certificate Sign, CRL Sign\n/);
    ssl.remove();
  });
});
