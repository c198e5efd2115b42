import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { readCrl as read } from '../issuing/ca.fixture.ts';
import { hasOpenSsl, openSsl, type Party, startTrustTenant, type TrustTenant } from '../trust.fixture.ts';
import { createCrlPublisher } from './crl.ts';

let trust: TrustTenant;
beforeAll(async () => {
  trust = await startTrustTenant('tenant_crl');
});
afterAll(() => trust.tenant.stop());

const hourMs = 3_600_000;

const enrol = async (party: Party) =>
  (await trust.call('POST', `${party.path}/enrol`, { token: party.token, body: {} })).body;
const revoke = (party: Party, reason = 'cessationOfOperation') =>
  trust.call('POST', `${party.path}/revoke`, { token: party.token, body: { reason } });
const crlOf = (party: Party) => trust.call('GET', `${party.tenantPath}/crl`);

describe('a revocation', () => {
  it('names every certificate of the wallet, in the next list at once, and is audited', async () => {
    const { acme, call } = trust;
    expect((await crlOf(acme)).body.code).toBe('TRUST_ANCHOR_NOT_FOUND');
    expect([(await revoke(acme)).status, (await revoke(acme)).body.code]).toEqual([404, 'CERT_NOT_ENROLLED']);
    const [first, second] = [await enrol(acme), await enrol(acme)];
    const before = await crlOf(acme);
    expect([before.status, before.type]).toEqual([200, 'application/pkix-crl']);
    expect(read(before.bytes)).toMatchObject({ number: 1, serials: [], hours: 24 });
    const revoked = await revoke(acme);
    expect(revoked.status).toBe(200);
    expect(revoked.body.certificates).toHaveLength(2);
    expect(revoked.body.certificates[0]).toMatchObject({ status: 'Revoked', revokedAt: expect.any(String) });
    const serials = [first.serialNumber, second.serialNumber].sort();
    expect(read((await crlOf(acme)).bytes)).toMatchObject({ number: 2, serials, reasons: [5, 5] });
    expect((await call('GET', `${acme.path}/cert-chain`)).body.code).toBe('CERT_NOT_ENROLLED');
    expect((await revoke(acme)).body).toEqual(revoked.body);
    expect(read((await crlOf(acme)).bytes).number).toBe(2);
    const audited = await trust.tenant.db.read
      .selectFrom('audit_events')
      .select('details')
      .where('organization_id', '=', acme.id)
      .where('event_type', '=', 'CertificateRevoked')
      .execute();
    expect(audited).toHaveLength(1);
    expect(audited[0]?.details).toMatchObject({
      reason: 'cessationOfOperation',
      walletAddress: acme.wallet.address,
    });
  });

  it('is for administrators, and of the own organisation', async () => {
    const { acme, other, call } = trust;
    await enrol(other);
    const crossed = `${acme.tenantPath}/orgs/${other.wallet.address}/revoke`;
    expect((await call('POST', crossed, { token: acme.token, body: { reason: 'x' } })).body.code).toBe(
      'CERT_NOT_ENROLLED',
    );
    const foreign = `${other.path}/revoke`;
    for (const [token, status] of [
      [acme.token, 403],
      [other.member, 403],
    ] as const) {
      expect((await call('POST', foreign, { token, body: { reason: 'x' } })).status).toBe(status);
    }
    expect(read((await crlOf(other)).bytes).serials).toEqual([]);
    for (const reason of ['', ' ', 'a\nb', 'x'.repeat(201)])
      expect((await revoke(other, reason)).status).toBe(400);
  });

  it('needs no wallet service; a list that lacks it is not served', async () => {
    const party = await trust.makeParty('Offline', 'offline');
    await enrol(party);
    const before = (await crlOf(party)).bytes;
    trust.keys.isDown = true;
    expect((await crlOf(party)).bytes).toEqual(before);
    expect((await revoke(party, 'privilegeWithdrawn')).status).toBe(200);
    const missing = await crlOf(party);
    expect([missing.status, missing.body.code]).toEqual([503, 'CRL_UNAVAILABLE']);
    trust.keys.isDown = false;
    party.wallet.state = 'locked';
    expect((await crlOf(party)).status).toBe(503);
    party.wallet.state = 'usable';
    const { serials, number, reasons } = read((await crlOf(party)).bytes);
    expect([serials.length, reasons]).toEqual([1, [9]]);
    expect(number).toBeGreaterThan(read(before).number);
  });

  it('for a compromised key ends certificates for it; other reasons do not', async () => {
    const party = await trust.makeParty('Compromised', 'compromised');
    await enrol(party);
    await revoke(party, 'no longer needed');
    const first = read((await crlOf(party)).bytes);
    expect(first.reasons).toEqual([undefined]);
    expect((await enrol(party)).status).toBe('Active');
    await revoke(party, 'keyCompromise');
    for (const route of ['enrol', 'csr']) {
      const refused = await trust.call('POST', `${party.path}/${route}`, { token: party.token });
      expect([refused.status, refused.body.code]).toEqual([422, 'CERT_KEY_NOT_ELIGIBLE']);
      expect(refused.body.detail).toContain('replace the wallet');
    }
    const { body } = await trust.call('GET', `${party.path}/certificates`, { token: party.token });
    expect(body.eligibility).toMatchObject({ eligible: false, reason: 'CERT_KEY_NOT_ELIGIBLE' });
    const wallet = trust.keys.makeWallet(party.id);
    const next = { ...party, path: `${party.tenantPath}/orgs/${wallet.address}` };
    expect((await enrol(next)).status).toBe('Active');
    const list = read((await crlOf(party)).bytes);
    expect([list.serials, list.number]).toEqual([[], first.number + 1]);
  });

  it('of enrolments at the same time leaves no certificate in use that it should have named', async () => {
    const party = await trust.makeParty('Racing', 'racing');
    await enrol(party);
    await Promise.all([enrol(party), revoke(party, 'keyCompromise'), enrol(party), enrol(party)]);
    await revoke(party, 'keyCompromise');
    const { certificates } = (await trust.call('GET', `${party.path}/certificates`, { token: party.token }))
      .body;
    expect(new Set(certificates.map(({ status }: { status: string }) => status))).toEqual(
      new Set(['Revoked']),
    );
    const serials = certificates.map(({ serialNumber }: { serialNumber: string }) => serialNumber).sort();
    expect(read((await crlOf(party)).bytes).serials).toEqual(serials);
  });
});

describe('a list', () => {
  it('is signed again when it has aged half, once for all readers, with rising numbers', async () => {
    const party = await trust.makeParty('Aging', 'aging');
    await enrol(party);
    const { db, runtime } = trust.tenant;
    const clock = manualClock(trust.tenant.clock.nowMs());
    const crls = createCrlPublisher({ db, clock, keys: trust.keys, log: runtime.log });
    const get = async () => read(await crls.get(party.id)).number;
    const [first, signed] = [await get(), trust.keys.signed];
    clock.advance(12 * hourMs - 2_000);
    expect([await get(), trust.keys.signed]).toEqual([first, signed]);
    clock.advance(4_000);
    trust.keys.isDown = true;
    expect(await get()).toBe(first);
    trust.keys.isDown = false;
    const numbers = await Promise.all(Array.from({ length: 10 }, get));
    expect([new Set(numbers).size, trust.keys.signed]).toEqual([1, signed + 1]);
    expect(numbers[0]).toBeGreaterThan(first);
    clock.advance(24 * hourMs);
    trust.keys.isDown = true;
    await expect(crls.get(party.id)).rejects.toMatchObject({ code: 'CRL_UNAVAILABLE' });
    trust.keys.isDown = false;
  });

  it('of a slow signature does not replace a newer one', async () => {
    const party = await trust.makeParty('Slow', 'slow');
    await enrol(party);
    const { db, runtime, clock } = trust.tenant;
    const slow = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const keys = {
      ...trust.keys,
      sign: async (...given: Parameters<typeof trust.keys.sign>) => {
        started.resolve();
        await slow.promise;
        return trust.keys.sign(...given);
      },
    };
    const late = createCrlPublisher({ db, clock, keys, log: runtime.log }).get(party.id);
    await started.promise;
    await revoke(party);
    const newer = (await crlOf(party)).bytes;
    slow.resolve();
    expect(read(await late).serials).toEqual([]);
    expect((await crlOf(party)).bytes).toEqual(newer);
    expect(read(newer).serials).toHaveLength(1);
  });

  it('of a signature by another key is not stored', async () => {
    const party = await trust.makeParty('Forged', 'forged');
    await enrol(party);
    trust.keys.forge = (_use, digest) => Buffer.from(party.wallet.keys.issuer.signDigest(digest));
    expect((await crlOf(party)).status).toBe(503);
    trust.keys.forge = undefined;
    expect((await crlOf(party)).status).toBe(200);
  });
});

describe.skipIf(!hasOpenSsl())('revocation, judged by OpenSSL (skipped without openssl)', () => {
  it('changes what `openssl verify -crl_check` says', async () => {
    const party = await trust.makeParty('Judged', 'judged');
    const ssl = openSsl();
    await enrol(party);
    const { chain } = (await trust.call('GET', `${party.path}/cert-chain`)).body;
    ssl.write('leaf.der', Buffer.from(chain[0], 'base64'));
    ssl.write('root.der', (await trust.call('GET', `${party.tenantPath}/trust-anchor`)).bytes);
    for (const name of ['leaf', 'root'])
      ssl.run('x509', '-inform', 'DER', '-in', `${name}.der`, '-out', `${name}.pem`);
    const verify = async () => {
      ssl.write('list.der', (await crlOf(party)).bytes);
      ssl.run('crl', '-inform', 'DER', '-in', 'list.der', '-out', 'list.pem');
      const checked = ssl.run(
        'crl',
        '-in',
        'list.pem',
        '-CAfile',
        'root.pem',
        '-noout',
        '-text',
        '-crlnumber',
      );
      expect(checked).toContain('X509v3 CRL Number');
      return ssl.run(
        'verify',
        '-x509_strict',
        '-crl_check',
        '-CAfile',
        'root.pem',
        '-CRLfile',
        'list.pem',
        'leaf.pem',
      );
    };
    expect(await verify()).toBe('leaf.pem: OK\n');
    await revoke(party, 'keyCompromise');
    expect(await verify()).toContain('certificate revoked');
    expect(ssl.run('crl', '-in', 'list.pem', '-noout', '-text')).toMatch(/Reason Code:\s+Key Compromise/);
    ssl.remove();
  });
});
