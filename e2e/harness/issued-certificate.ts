import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const dayMs = 86_400_000;

/** A certificate authority in files of a directory, and a certificate that it issued. */
export interface IssuedCertificate {
  /** PEM of the authority. */
  readonly authorityFile: string;
  /** PEM. */
  readonly key: string;
  readonly certificate: string;
  /** Key and certificate in one file. */
  readonly bundleFile: string;
}

/** Makes an authority, and a certificate for a DNS name below it. */
export async function issueCertificate(
  directory: string,
  name: string,
  dnsName: string,
): Promise<IssuedCertificate> {
  const [authorityKeys, keys] = await Promise.all([createKeys(), createKeys()]);
  const validity = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + 20 * dayMs) };
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: `CN=${name} authority`,
    keys: authorityKeys,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  const issued = await x509.X509CertificateGenerator.create({
    serialNumber: '02',
    subject: `CN=${name}`,
    issuer: authority.subject,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: dnsName }]),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    ],
  });
  const [authorityFile, bundleFile] = [join(directory, `${name}.ca.crt`), join(directory, `${name}.pem`)];
  const key = x509.PemConverter.encode(
    await crypto.subtle.exportKey('pkcs8', keys.privateKey),
    'PRIVATE KEY',
  );
  const certificate = issued.toString('pem');
  writeFileSync(authorityFile, authority.toString('pem'));
  writeFileSync(bundleFile, `${key}\n${certificate}\n`, { mode: 0o600 });
  return { authorityFile, key, certificate, bundleFile };
}

function createKeys() {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}
