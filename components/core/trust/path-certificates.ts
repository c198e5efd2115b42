import type { SignatureKey } from '../crypto/signature-key.ts';
import { isAppError } from '../errors/errors.ts';
import { type Certificate, isSelfIssued } from './certificate.ts';
import { allowsKeyUsage, basicConstraintsOf, EXTENSION, KEY_USAGE } from './extensions.ts';
import { honoursNameConstraints } from './name-constraints.ts';

/** Why a certificate of a path is refused. */
export interface CertificateFault {
  /** TRUST_CERT_EXPIRED also before its time. */
  readonly code: 'TRUST_CHAIN_INVALID' | 'TRUST_CERT_EXPIRED';
  /** Place of the certificate in the path; the leaf is 0. */
  readonly index: number;
  /** Continues "certificate N": "is no CA". */
  readonly message: string;
}

/**
 * Extensions whose rules are applied here or by the caller (lists of revoked certificates). Policies are processed with
 * the initial set any-policy, under which every policy is acceptable; constraints and mappings of policies are not known.
 */
const PROCESSED: ReadonlySet<string> = new Set(Object.values(EXTENSION));

/** The key of a certificate, when it is P-256, P-384 or RSA. */
export function findAcceptedKey({ key }: Certificate): SignatureKey | undefined {
  const isAccepted = key?.kind === 'P-256' || key?.kind === 'P-384' || key?.kind === 'RSA';
  return isAccepted ? key : undefined;
}

/** What holds for every certificate, the anchor included (RFC 5280 section 6.1.4 (o), 6.1.5 (f)). */
function judgeEach(certificate: Certificate): string[] {
  const messages: string[] = [];
  if (certificate.version !== 3) messages.push('is not of version 3');
  for (const [oid, { isCritical }] of certificate.extensions) {
    if (isCritical && !PROCESSED.has(oid))
      messages.push(`has the critical extension ${oid}, which is not supported`);
  }
  if (findAcceptedKey(certificate) === undefined)
    messages.push('has a key that is not accepted; P-256, P-384 and RSA from 2048 bits are');
  return messages;
}

/**
 * What holds for every issuer (RFC 5280 section 6.1.4 (k) to (n)).
 * @param below certificates below it, the leaf first
 */
function judgeIssuer(issuer: Certificate, below: readonly Certificate[]): string[] {
  const { isAuthority, pathLength } = basicConstraintsOf(issuer);
  if (!isAuthority) return ['is no CA'];
  const messages: string[] = [];
  if (!allowsKeyUsage(issuer, KEY_USAGE.keyCertSign))
    messages.push('may not sign certificates by its key usage');
  const intermediate = below.slice(1).filter((each) => !isSelfIssued(each));
  if (pathLength !== undefined && intermediate.length > pathLength)
    messages.push(`allows ${pathLength} CAs below it, and the path has ${intermediate.length}`);
  const named = [...below.slice(0, 1), ...intermediate];
  if (!honoursNameConstraints(issuer, named))
    messages.push('has name constraints that a name below it does not meet, or that are not supported');
  return messages;
}

/** Both ends belong to the validity, the last second as a whole (RFC 5280 section 4.1.2.5). */
function judgeTime({ notBeforeMs, notAfterMs }: Certificate, atMs: number): string | undefined {
  if (atMs < notBeforeMs) return `is not valid before ${new Date(notBeforeMs).toISOString()}`;
  return atMs >= notAfterMs + 1_000 ? `expired at ${new Date(notAfterMs).toISOString()}` : undefined;
}

/** The messages of a judgement; a malformed extension is one of them. */
function messagesOf(judge: () => string[]): string[] {
  try {
    return judge();
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    return [`has an extension that is malformed (${error.message})`];
  }
}

/**
 * Judges the certificates of a path apart from their signatures and the names that link them: version, key, critical
 * extensions, validity, and of those above the leaf basic constraints, path length, key usage and name constraints.
 * @param path the leaf first, its anchor or topmost certificate last
 * @param atMs milliseconds since the epoch
 */
export function judgeCertificates(path: readonly Certificate[], atMs: number): readonly CertificateFault[] {
  return path.flatMap((certificate, index): CertificateFault[] => {
    const messages = [
      ...messagesOf(() => judgeEach(certificate)),
      ...(index === 0 ? [] : messagesOf(() => judgeIssuer(certificate, path.slice(0, index)))),
    ];
    const late = judgeTime(certificate, atMs);
    return [
      ...messages.map((message) => ({ code: 'TRUST_CHAIN_INVALID', index, message }) as const),
      ...(late === undefined ? [] : [{ code: 'TRUST_CERT_EXPIRED', index, message: late } as const]),
    ];
  });
}
