import {
  createHash,
  createPrivateKey,
  createPublicKey,
  randomBytes,
  sign,
  verify,
  X509Certificate,
} from 'node:crypto';
import { CoseKey, type MdocContext, type Sign1 } from '@owf/mdoc';

const HASHES = { 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' } as const;

function unsupported(): never {
  throw new Error('not part of these tests');
}

/** What the library of OWF needs, by node:crypto; certificate chains are not its part here. */
export const libraryContext: MdocContext = {
  crypto: {
    random: (length) => new Uint8Array(randomBytes(length)),
    digest: ({ digestAlgorithm, bytes }) =>
      new Uint8Array(createHash(HASHES[digestAlgorithm]).update(bytes).digest()),
    calculateEphemeralMacKey: unsupported,
  },
  cose: {
    sign1: {
      sign: ({ toBeSigned, key }) => {
        const object = createPrivateKey({ key: { ...key.jwk }, format: 'jwk' });
        return new Uint8Array(sign('sha256', toBeSigned, { key: object, dsaEncoding: 'ieee-p1363' }));
      },
      verify: ({ key, sign1 }: { key: CoseKey; sign1: Sign1 }) => {
        const object = createPublicKey({ key: { ...key.jwk }, format: 'jwk' });
        return verify(
          'sha256',
          sign1.toBeSigned,
          { key: object, dsaEncoding: 'ieee-p1363' },
          sign1.signature,
        );
      },
    },
    mac0: { sign: unsupported, verify: unsupported },
  },
  x509: {
    getIssuerNameField: ({ certificate, field }) => {
      const { issuer } = new X509Certificate(certificate);
      return issuer
        .split('\n')
        .filter((line) => line.startsWith(`${field}=`))
        .map((line) => line.slice(field.length + 1));
    },
    getPublicKey: ({ certificate }) =>
      CoseKey.fromJwk({ ...new X509Certificate(certificate).publicKey.export({ format: 'jwk' }) }),
    verifyCertificateChain: unsupported,
    getCertificateData: ({ certificate }) => {
      const { validFromDate, validToDate, issuer, subject, serialNumber } = new X509Certificate(certificate);
      return {
        issuerName: issuer,
        subjectName: subject,
        serialNumber,
        thumbprint: '',
        notBefore: validFromDate,
        notAfter: validToDate,
        pem: '',
      };
    },
  },
};
