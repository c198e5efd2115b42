import 'reflect-metadata';
import { Pkcs10CertificateRequest, type PublicKey, SubjectAlternativeNameExtension } from '@peculiar/x509';
import { refusal } from '../errors.ts';

const PEM = /^\s*-----BEGIN CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE REQUEST-----\s*$/;

/**
 * The public key of a PKCS#10 request (RFC 2986), with its proof of possession verified. Nothing else of the request is
 * used, and it may name only the identity that its sender gets.
 *
 * Errors: invalid/CSR_REFUSED.
 */
export async function verifyCsr(pem: string, spiffeId: string): Promise<PublicKey> {
  const request = parse(pem);
  const { publicKey, algorithm } = keyOf(request);
  if (algorithm.name !== 'ECDSA' || !('namedCurve' in algorithm) || algorithm.namedCurve !== 'P-256') {
    throw refusal('csr_key');
  }
  if (!(await isSigned(request))) throw refusal('csr_signature');
  const names = namesOf(request);
  if (names.some(({ type, value }) => type !== 'url' || value !== spiffeId)) throw refusal('csr_name');
  return publicKey;
}

function parse(pem: string): Pkcs10CertificateRequest {
  const base64 = PEM.exec(pem)?.[1];
  if (base64 === undefined) throw refusal('csr_unreadable');
  try {
    return new Pkcs10CertificateRequest(new Uint8Array(Buffer.from(base64, 'base64')));
  } catch (cause) {
    throw refusal('csr_unreadable', { cause });
  }
}

/** The library parses key and curve lazily, so its errors are caught here. */
function keyOf(request: Pkcs10CertificateRequest) {
  try {
    const { publicKey } = request;
    return { publicKey, algorithm: publicKey.algorithm };
  } catch (cause) {
    throw refusal('csr_unreadable', { cause });
  }
}

async function isSigned(request: Pkcs10CertificateRequest): Promise<boolean> {
  try {
    return await request.verify();
  } catch {
    return false;
  }
}

function namesOf(request: Pkcs10CertificateRequest) {
  try {
    return request.extensions.flatMap((extension) =>
      extension instanceof SubjectAlternativeNameExtension ? extension.names.items : [],
    );
  } catch (cause) {
    throw refusal('csr_unreadable', { cause });
  }
}
