import 'reflect-metadata';
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import * as x509 from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A certificate of an issuing organisation with its key, below a root of its own. */
export interface IssuingCertificate {
  /** DER, leaf first, without the root. */
  readonly chain: readonly Uint8Array[];
  readonly rootPem: string;
  /** A list of the root about serial numbers in hexadecimal: DER, for one day. The leaf has the number 02. */
  revocationList(revoked: readonly string[], nowMs: number): Promise<Buffer>;
  /** Key identifier of the root, base64url. */
  readonly authorityKeyId: string;
  /** r and s over a digest. */
  sign(digest: Uint8Array): Uint8Array;
  readonly privateKey: KeyObject;
}

/** Makes a root, and a leaf below it for a host; its purpose is that of document signers, `listUri` names its list. */
export async function issuingCertificate(
  host: string,
  nowMs: number,
  { purposes = ['1.0.18013.5.1.2'], listUri }: { purposes?: string[]; listUri?: string } = {},
): Promise<IssuingCertificate> {
  const rootKeys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const leafKeys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const validity = { notBefore: new Date(nowMs - 86_400_000), notAfter: new Date(nowMs + 30 * 86_400_000) };
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Test root',
    keys: rootKeys,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  });
  const authority = await x509.AuthorityKeyIdentifierExtension.create(rootKeys.publicKey);
  const leaf = await x509.X509CertificateGenerator.create({
    serialNumber: '02',
    subject: 'CN=City of Test',
    issuer: root.subject,
    publicKey: leafKeys.publicKey,
    signingKey: rootKeys.privateKey,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      authority,
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(purposes),
      ...(listUri === undefined ? [] : [new x509.CRLDistributionPointsExtension([listUri])]),
    ],
  });
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', leafKeys.privateKey));
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const { d = '' } = privateKey.export({ format: 'jwk' });
  return {
    chain: [new Uint8Array(leaf.rawData)],
    rootPem: root.toString('pem'),
    revocationList: async (revoked, thisMs) => {
      const list = await x509.X509CrlGenerator.create({
        issuer: root.subject,
        thisUpdate: new Date(thisMs),
        nextUpdate: new Date(thisMs + 86_400_000),
        signingAlgorithm: algorithm,
        signingKey: rootKeys.privateKey,
        entries: revoked.map((serialNumber) => ({ serialNumber, revocationDate: new Date(thisMs) })),
      });
      return Buffer.from(list.rawData);
    },
    authorityKeyId: Buffer.from(authority.keyId ?? '', 'hex').toString('base64url'),
    sign: (digest) => p256.sign(digest, Buffer.from(d, 'base64url'), { prehash: false, lowS: false }),
    privateKey,
  };
}
