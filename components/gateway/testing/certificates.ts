import 'reflect-metadata';
import type { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type X509Certificate as ParsedCertificate,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Identity } from '../forwarding/connector.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;

export interface TestAuthority {
  /** An X.509-SVID with these URI SANs. */
  issue(...spiffeIds: readonly string[]): Promise<Identity>;
}

/** A trust domain for one test. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const authority = await X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=test authority',
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return { issue: (...spiffeIds) => issue(keys, authority, spiffeIds) };
}

async function issue(
  signer: webcrypto.CryptoKeyPair,
  authority: ParsedCertificate,
  spiffeIds: readonly string[],
): Promise<Identity> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex'),
    subject: 'CN=test',
    issuer: authority.subject,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
    publicKey: keys.publicKey,
    signingKey: signer.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new SubjectAlternativeNameExtension(spiffeIds.map((value) => ({ type: 'url' as const, value }))),
    ],
  });
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.match(/.{1,64}/g)?.join('\n')}\n-----END PRIVATE KEY-----\n`;
  return {
    key,
    cert: certificate.toString('pem'),
    ca: authority.toString('pem'),
    expiresAtMs: certificate.notAfter.getTime(),
  };
}
