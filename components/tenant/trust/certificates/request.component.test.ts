import { createPublicKey, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { passTime } from '../../tenant.fixture.ts';
import { hasOpenSsl, openSsl, type Party, startTrustTenant, type TrustTenant } from '../trust.fixture.ts';

let trust: TrustTenant;
beforeAll(async () => {
  trust = await startTrustTenant('tenant_csr');
});
afterAll(() => trust.tenant.stop());

describe('a certificate request', () => {
  const csr = (party: Party, body?: object) =>
    trust.call('POST', `${party.path}/csr`, { token: party.token, ...(body !== undefined && { body }) });

  it('refuses names that are malformed, and wallets without a key', async () => {
    const { acme } = trust;
    for (const subjectDn of [
      'Acme',
      'CN=',
      'CN=a,,O=b',
      'CN=a,',
      'X=y',
      'C=Deutschland',
      'C=1!',
      `CN=${'x'.repeat(65)}`,
      'CN=a\u202eb',
      'CN=a\nO=b',
      'CN=a\\',
      Array(17).fill('OU=x').join(','),
      '1.2.3=x',
      '__proto__=x',
    ]) {
      const { status, body } = await csr(acme, { subjectDn });
      expect([status, body.code], subjectDn).toEqual([400, 'INVALID_REQUEST']);
    }
    const party = await trust.makeParty('Without', 'without');
    party.wallet.state = 'ineligible';
    const refused = await csr(party, {});
    expect([refused.status, refused.body.code]).toEqual([422, 'CERT_KEY_NOT_ELIGIBLE']);
    expect(refused.body.detail).toContain('ED25519 or NISTP256');
  });

  describe.skipIf(!hasOpenSsl())('judged and signed by OpenSSL (skipped without openssl)', () => {
    it('verifies, has the name, and leads to a certificate that is imported', async () => {
      const { acme } = trust;
      const ssl = openSsl();
      const subjectDn = 'CN=Acme\\, "Works" Ärger, O=#30, C=DE, organizationIdentifier=VATDE-1';
      const { status, body } = await csr(acme, { subjectDn });
      expect(status).toBe(200);
      ssl.write('csr.pem', body.csrPem);
      expect(ssl.run('req', '-in', 'csr.pem', '-noout', '-verify')).not.toContain('fail');
      const text = ssl.run(
        'req',
        '-in',
        'csr.pem',
        '-noout',
        '-subject',
        '-nameopt',
        'RFC2253,utf8,-esc_msb',
      );
      expect(text).toContain('organizationIdentifier=VATDE-1,C=DE,O=\\#30,CN=Acme\\, \\"Works\\" Ärger');
      expect(ssl.run('req', '-in', 'csr.pem', '-noout', '-pubkey')).toBe(
        createPublicKey({
          key: Buffer.from(acme.wallet.keys.issuer.publicKey),
          format: 'der',
          type: 'spki',
        }).export({
          format: 'pem',
          type: 'spki',
        }),
      );
      ssl.run(
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-keyout',
        'ca.key',
        '-out',
        'ca.pem',
        '-subj',
        '/CN=Test CA',
        '-days',
        '30',
      );
      ssl.write(
        'ext',
        'keyUsage=critical,digitalSignature\nsubjectAltName=otherName:1.3.6.1.4.1.1.1;UTF8:x,DNS:a.example\n',
      );
      ssl.run(
        'x509',
        '-req',
        '-in',
        'csr.pem',
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca.key',
        '-out',
        'leaf.pem',
        '-days',
        '10',
        '-extfile',
        'ext',
        '-text',
      );
      expect(ssl.run('verify', '-CAfile', 'ca.pem', 'leaf.pem')).toBe('leaf.pem: OK\n');
      await passTime(trust.tenant, 60_000);
      const imported = await trust.call('POST', `${acme.path}/certificates/import`, {
        token: acme.token,
        body: { certificatePem: ssl.read('leaf.pem'), chainPem: [ssl.read('ca.pem')] },
      });
      expect(imported.status).toBe(201);
      expect(imported.body.san).toContain('DNS:a.example');
      expect(imported.body.chain).toHaveLength(2);
      const { chain } = (await trust.call('GET', `${acme.path}/imported-cert-chain`)).body;
      expect(new X509Certificate(Buffer.from(chain[0], 'base64')).subject).toContain(
        'CN=Acme\\, \\"Works\\" Ärger',
      );
      ssl.remove();
    });

    it('has the name of the organisation when none is given', async () => {
      const { acme } = trust;
      const ssl = openSsl();
      ssl.write('csr.pem', (await csr(acme)).body.csrPem);
      expect(ssl.run('req', '-in', 'csr.pem', '-noout', '-subject', '-nameopt', 'RFC2253')).toBe(
        'subject=O=Acme\\, \\"Works\\",CN=Acme\\, \\"Works\\"\n',
      );
      ssl.remove();
    });
  });
});
