import { createHash, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chainDers, ecKey } from '#core/trust/testing/chains.ts';
import { der, oid, sequence } from '#core/trust/testing/der-writer.ts';
import { pem } from '#core/trust/testing/openssl.ts';
import { makeCa, makeCertificate, type TestCertificate, usages } from '../issuing/ca.fixture.ts';
import { makeRoot } from '../issuing/make.ts';
import { organizationNameOf } from '../issuing/names.ts';
import { type Party, startTrustTenant, type TrustTenant } from '../trust.fixture.ts';

let trust: TrustTenant;
let root: TestCertificate;
let middle: TestCertificate;
beforeAll(async () => {
  trust = await startTrustTenant('tenant_import');
  root = await makeCa('CN=root');
  middle = await makeCa('CN=middle', { issuer: root, pathLength: 0 });
});
afterAll(() => trust.tenant.stop());

const dayMs = 86_400_000;

/** A leaf for the key of an organisation. */
const leafOf = (party: Party, issuer = middle, more: object = {}) =>
  makeCertificate({
    name: 'CN=Acme, C=DE',
    issuer,
    spki: party.wallet.keys.issuer.publicKey,
    usages: usages.digitalSignature,
    ...more,
  });

const upload = (party: Party, leaf: TestCertificate, chain: readonly TestCertificate[]) =>
  trust.call('POST', `${party.path}/certificates/import`, {
    token: party.token,
    body: { certificatePem: leaf.pem, chainPem: chain.map(({ pem }) => pem) },
  });

const statusesOf = async (party: Party, path = party.path): Promise<string[]> => {
  const { body } = await trust.call('GET', `${path}/certificates`, { token: party.token });
  return body.certificates.map(
    (each: { provenance: string; status: string }) => `${each.provenance} ${each.status}`,
  );
};

const chainOf = async (party: Party) => {
  const { status, body } = await trust.call('GET', `${party.path}/imported-cert-chain`);
  return status === 200 ? body.chain.map((text: string) => Buffer.from(text, 'base64')) : status;
};

describe('an import', () => {
  it('is served without the root, in order, however it was sent', async () => {
    const { acme } = trust;
    expect(await chainOf(acme)).toBe(404);
    const leaf = await leafOf(acme);
    for (const sent of [[middle], [middle, root], [root, middle], [leaf, root, middle, middle]]) {
      const { status, body } = await upload(acme, leaf, sent);
      expect(status).toBe(201);
      expect(body).toMatchObject({ provenance: 'Imported', status: 'Active', boundKeySource: 'Primary' });
      expect(body.chain).toHaveLength(sent.includes(root) ? 3 : 2);
      expect(await chainOf(acme)).toEqual([leaf.der, middle.der]);
    }
    expect(await statusesOf(acme)).toEqual(['Imported Active', ...Array(3).fill('Imported Superseded')]);
    const direct = await leafOf(acme, root);
    expect((await upload(acme, direct, [])).status).toBe(201);
    expect(await chainOf(acme)).toEqual([direct.der]);
    const bundle = { ...middle, pem: `${middle.pem}${root.pem}` };
    expect((await upload(acme, leaf, [bundle])).status).toBe(201);
    expect(await chainOf(acme)).toEqual([leaf.der, middle.der]);
  });

  it('with a fault is refused by its code and remedy, and changes nothing', async () => {
    const party = await trust.makeParty('Faults', 'faults');
    const good = await leafOf(party);
    await upload(party, good, [middle]);
    const [now, key] = [trust.tenant.clock.nowMs(), party.wallet.keys.issuer.publicKey];
    const noCa = await makeCertificate({ name: 'CN=middle', issuer: root, isAuthority: false });
    const deep = await makeCa('CN=deep', { issuer: middle });
    const rsa = await makeCa('CN=small', { key: 'RSA-1024' });
    const old = await makeCa('CN=old', { issuer: root, toMs: now - dayMs });
    const oldRoot = await makeCa('CN=oldroot', { toMs: now - dayMs });
    const constrained = await makeCa('CN=nc', {
      extra: [{ oid: '2.5.29.30', critical: true, value: Buffer.from('3000', 'hex') }],
    });
    const twin = await makeCa('CN=middle', { issuer: root });
    const own = await makeCertificate({ name: 'CN=self', usages: usages.digitalSignature });
    const cases: readonly [string, string, RegExp, TestCertificate, readonly TestCertificate[]][] = [
      [
        'another key',
        'CERT_KEY_MISMATCH',
        /csr/,
        await makeCertificate({ name: 'CN=x', issuer: middle, usages: usages.digitalSignature }),
        [middle],
      ],
      ['an issuer that is no CA', 'CERT_CHAIN_INVALID', /is no CA/, await leafOf(party, noCa), [noCa, root]],
      ['too long', 'CERT_CHAIN_INVALID', /allows 0 CAs/, await leafOf(party, deep), [deep, middle]],
      ['a weak CA', 'CERT_CHAIN_INVALID', /RSA from 2048/, await leafOf(party, rsa), [rsa]],
      [
        'name constraints',
        'CERT_CHAIN_INVALID',
        /name constraints/,
        await leafOf(party, constrained),
        [constrained],
      ],
      ['an issuer of the same name', 'CERT_CHAIN_INVALID', /not part/, good, [twin]],
      ['a gap', 'CERT_CHAIN_INVALID', /not part/, good, [root]],
      [
        'an expired CA',
        'CERT_EXPIRED',
        /above it expired.*request a new/,
        await leafOf(party, old),
        [old, root],
      ],
      ['an expired root', 'CERT_EXPIRED', /expired/, await leafOf(party, oldRoot), [oldRoot]],
      [
        'an expired leaf',
        'CERT_EXPIRED',
        /the certificate expired/,
        await leafOf(party, middle, { toMs: now - 2_000 }),
        [middle],
      ],
      [
        'a time to come',
        'CERT_EXPIRED',
        /not valid before/,
        await leafOf(party, middle, { fromMs: now + dayMs }),
        [middle],
      ],
      [
        'other key usage',
        'CERT_UNSUITABLE',
        /digitalSignature/,
        await leafOf(party, middle, { usages: usages.keyAgreement }),
        [middle],
      ],
      [
        'other purposes',
        'CERT_UNSUITABLE',
        /extended key usage/,
        await leafOf(party, middle, { extendedUsages: ['1.3.6.1.5.5.7.3.1'] }),
        [middle],
      ],
      [
        'a CA',
        'CERT_UNSUITABLE',
        /CA/,
        await makeCa('CN=x', {
          issuer: root,
          spki: key,
          usages: usages.keyCertSign | usages.digitalSignature,
        }),
        [root],
      ],
      ['no PEM', 'CERT_CHAIN_INVALID', /certificatePem holds no PEM/, { ...good, pem: 'text' }, [middle]],
      [
        'no PEM above',
        'CERT_CHAIN_INVALID',
        /chainPem\[0\] holds no PEM/,
        good,
        [{ ...middle, pem: '-----BEGIN PRIVATE KEY-----' }],
      ],
      [
        'two leaves',
        'CERT_CHAIN_INVALID',
        /several certificates/,
        { ...good, pem: good.pem + middle.pem },
        [],
      ],
      ['its own signature', 'CERT_KEY_MISMATCH', /csr/, own, [own]],
    ];
    for (const [what, code, text, leaf, chain] of cases) {
      const { status, body, type } = await upload(party, leaf, chain);
      expect([status, body.code, type], what).toEqual([422, code, 'application/problem+json; charset=utf-8']);
      expect(body.detail, what).toMatch(text);
    }
    expect(await statusesOf(party)).toEqual(['Imported Active']);
    expect(await chainOf(party)).toEqual([good.der, middle.der]);
  });

  it('may have a subject without attributes, and no name that cannot be shown', async () => {
    const party = await trust.makeParty('Unnamed', 'unnamed');
    const nowMs = trust.tenant.clock.nowMs();
    const times = { notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + dayMs };
    const ca = ecKey('P-256');
    const key = { ...ca, spki: Buffer.from(party.wallet.keys.issuer.publicKey) };
    const send = async (subject: Buffer) => {
      const [leaf, above] = chainDers('unnamed', [key, ca], { 0: { subject, ...times }, 1: times });
      const [certificatePem, chainPem] = [leaf, above].map((der) => pem(der ?? Buffer.of()));
      const body = { certificatePem, chainPem: [chainPem] };
      return trust.call('POST', `${party.path}/certificates/import`, { token: party.token, body });
    };
    const { status, body } = await send(sequence());
    expect([status, body.subjectDn]).toEqual([201, '']);
    const unreadable = sequence(der(0x31, sequence(oid('2.5.4.3'), der(0x0c, Buffer.of(0xff)))));
    expect((await send(unreadable)).body.code).toBe('CERT_CHAIN_INVALID');
    expect(await statusesOf(party)).toEqual(['Imported Active']);
  });

  it('signed by the key of the organisation itself is refused', async () => {
    const { acme } = trust;
    const { issuer } = acme.wallet.keys;
    const der = await makeRoot({
      name: organizationNameOf('Acme', 'Acme'),
      spki: Buffer.from(issuer.publicKey),
      sign: async (bytes) => Buffer.from(issuer.signDigest(createHash('sha256').update(bytes).digest())),
      notBeforeMs: Date.now() - dayMs,
      notAfterMs: Date.now() + dayMs,
    });
    const own = { ...root, der, pem: new X509Certificate(der).toString() };
    const { status, body } = await upload(acme, own, []);
    expect([status, body.code]).toEqual([422, 'CERT_CHAIN_INVALID']);
    expect(body.detail).toContain('signed by its own key');
  });

  it('has a bounded size', async () => {
    const { acme } = trust;
    const leaf = await leafOf(acme);
    const big = { ...middle, pem: middle.pem + ' '.repeat(16_384) };
    expect((await upload(acme, leaf, [big])).status).toBe(400);
    expect((await upload(acme, leaf, Array(11).fill(middle))).status).toBe(400);
    expect((await upload(acme, leaf, Array(10).fill(middle))).status).toBe(201);
    const huge = { ...middle, pem: ' '.repeat(300_000) };
    expect((await upload(acme, leaf, [huge])).status).toBe(413);
  });

  it('that another organisation sends for this key is refused', async () => {
    const { acme, other } = trust;
    const leaf = await leafOf(acme);
    expect((await upload(other, leaf, [middle])).body.code).toBe('CERT_KEY_MISMATCH');
    const foreign = { ...other, path: acme.path };
    expect((await upload(foreign, leaf, [middle])).body.code).toBe('FOREIGN_ORGANIZATION');
    const crossed = { ...other, path: `${other.tenantPath}/orgs/${acme.wallet.address}` };
    expect((await upload(crossed, leaf, [middle])).body.code).toBe('WALLET_NOT_FOUND');
  });
});

describe('an imported certificate', () => {
  it('is retired once and by its organisation, and the next one takes its place', async () => {
    const party = await trust.makeParty('Retired', 'retired');
    const { call, other } = trust;
    const leaf = await leafOf(party);
    const { id } = (await upload(party, leaf, [middle])).body;
    const url = `${party.path}/certificates/${id}`;
    const crossed = `${other.path}/certificates/${id}`;
    expect((await call('DELETE', url, { token: other.token })).body.code).toBe('FOREIGN_ORGANIZATION');
    expect((await call('DELETE', crossed, { token: other.token })).body.code).toBe('CERTIFICATE_NOT_FOUND');
    trust.keys.isDown = true;
    for (const _ of [1, 2]) expect((await call('DELETE', url, { token: party.token })).status).toBe(204);
    trust.keys.isDown = false;
    expect(await statusesOf(party)).toEqual(['Imported Superseded']);
    expect(await chainOf(party)).toBe(404);
    const internal = (await call('POST', `${party.path}/enrol`, { token: party.token, body: {} })).body;
    const refused = await call('DELETE', `${party.path}/certificates/${internal.id}`, { token: party.token });
    expect([refused.status, refused.body.code]).toEqual([404, 'CERTIFICATE_NOT_FOUND']);
    const events = await trust.tenant.db.read
      .selectFrom('audit_events')
      .select('event_type')
      .where('organization_id', '=', party.id)
      .where('event_type', 'in', ['CertificateImported', 'CertificateRetired'])
      .orderBy('id')
      .execute();
    expect(events.map((event) => event.event_type)).toEqual(['CertificateImported', 'CertificateRetired']);
  });

  it('of a replaced wallet becomes KeyMismatch for good, and no reader of the earlier address changes it', async () => {
    const party = await trust.makeParty('Replaced', 'replaced');
    await upload(party, await leafOf(party), [middle]);
    await trust.call('POST', `${party.path}/enrol`, { token: party.token, body: {} });
    const wallet = trust.keys.makeWallet(party.id);
    const next: Party = { ...party, wallet, path: `${party.tenantPath}/orgs/${wallet.address}` };
    expect(await chainOf(party)).toBe(404);
    expect((await trust.call('GET', `${party.path}/certificates`, { token: party.token })).status).toBe(404);
    const stored = () =>
      trust.tenant.db.read
        .selectFrom('organization_certificates')
        .select(['status'])
        .where('organization_id', '=', party.id)
        .orderBy('created_at')
        .execute();
    expect(await stored()).toEqual([{ status: 'Active' }, { status: 'Active' }]);
    expect(await statusesOf(next)).toEqual(['Internal KeyMismatch', 'Imported KeyMismatch']);
    expect(await stored()).toEqual([{ status: 'KeyMismatch' }, { status: 'KeyMismatch' }]);
    expect((await trust.call('GET', `${next.path}/cert-chain`)).status).toBe(404);
    expect((await upload(next, await leafOf(next), [middle])).status).toBe(201);
    expect(await statusesOf(next)).toEqual([
      'Imported Active',
      'Internal KeyMismatch',
      'Imported KeyMismatch',
    ]);
  });

  it('expires with the first certificate of its chain; a locked wallet or an outage ends nothing', async () => {
    const party = await trust.makeParty('Ending', 'ending');
    const short = await makeCa('CN=short', { issuer: root, toMs: trust.tenant.clock.nowMs() + 3_600_000 });
    await upload(party, await leafOf(party, short), [short, root]);
    party.wallet.state = 'locked';
    expect(await chainOf(party)).toBe(404);
    trust.keys.isDown = true;
    expect(await chainOf(party)).toBe(503);
    trust.keys.isDown = false;
    party.wallet.state = 'usable';
    expect(await statusesOf(party)).toEqual(['Imported Active']);
    await trust.tenant.db.transact((tx) =>
      tx
        .updateTable('organization_certificates')
        .set({ usable_until: new Date(trust.tenant.clock.nowMs() - 2_000) })
        .where('organization_id', '=', party.id)
        .execute(),
    );
    expect(await chainOf(party)).toBe(404);
    expect(await statusesOf(party)).toEqual(['Imported Expired']);
  });

  it('is stored with the end of its whole chain', async () => {
    const party = await trust.makeParty('Whole', 'whole');
    const endMs = Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000;
    const short = await makeCa('CN=short', { issuer: root, toMs: endMs });
    await upload(party, await leafOf(party, short), [short, root]);
    const row = await trust.tenant.db.read
      .selectFrom('organization_certificates')
      .select('usable_until')
      .where('organization_id', '=', party.id)
      .executeTakeFirstOrThrow();
    expect(row.usable_until.getTime()).toBe(endMs);
  });
});
