import type { SignatureKey } from '../crypto/signature-key.ts';
import { AppError, isAppError, violation } from '../errors/errors.ts';
import { type Judgement, judge } from '../errors/judgement.ts';
import { type Certificate, isIssuedBy, isSelfSigned } from './certificate.ts';
import { allowsKeyUsage, basicConstraintsOf, KEY_USAGE, namesPurpose } from './extensions.ts';
import { type CertificateFault, findAcceptedKey, judgeCertificates } from './path-certificates.ts';

/** Codes of path validation. */
type PathCode = 'TRUST_CHAIN_INVALID' | 'TRUST_CERT_EXPIRED' | 'TRUST_ISSUER_NOT_LISTED';

/** Most certificates of a path, its anchor not counted. */
export const MAX_PATH_CERTIFICATES = 5;

/** A purpose that the extended key usage must name. */
export interface RequiredPurpose {
  /** Object identifier. */
  readonly purpose: string;
  /** Whether a leaf without the extension is accepted. */
  readonly whenAbsent: 'accept' | 'refuse';
}

/** A path and what it is judged by. */
interface PathInput {
  /** Leaf first, each followed by its issuer; the anchor is not part of it. */
  readonly path: readonly Certificate[];
  readonly anchors: readonly Certificate[];
  /** Time of verification, in milliseconds since the epoch. */
  readonly atMs: number;
  /** Undefined when every purpose is accepted. */
  readonly purpose?: RequiredPurpose | undefined;
}

/** A path that leads to an anchor. */
interface ValidPath {
  readonly leaf: Certificate;
  readonly leafKey: SignatureKey;
  readonly anchor: Certificate;
}

function refuse(code: PathCode, message: string): never {
  throw new AppError('unprocessable', code, message, { violations: [violation(code, message)] });
}

const refuseChain = (message: string): never => refuse('TRUST_CHAIN_INVALID', message);

function judgeOrder(path: readonly Certificate[], anchors: readonly Certificate[]): Certificate {
  const [leaf] = path;
  if (leaf === undefined || path.length > MAX_PATH_CERTIFICATES) {
    return refuseChain(`A path has 1 to ${MAX_PATH_CERTIFICATES} certificates`);
  }
  const thumbprints = path.map(({ thumbprint }) => thumbprint);
  if (new Set(thumbprints).size !== path.length) refuseChain('A certificate occurs twice');
  if (anchors.some(({ thumbprint }) => thumbprints.includes(thumbprint)))
    refuseChain('The path contains its anchor');
  if (path.some(isSelfSigned)) refuseChain('The path contains a self-signed certificate');
  for (const [at, issuer] of path.slice(1).entries()) {
    const subject = path[at];
    if (subject === undefined || !isIssuedBy(subject, issuer))
      refuseChain('A certificate is not issued by the next one');
  }
  return leaf;
}

function judgeLeaf(
  leaf: Certificate,
  issuers: readonly Certificate[],
  required: RequiredPurpose | undefined,
): void {
  if (!allowsKeyUsage(leaf, KEY_USAGE.digitalSignature)) refuseChain('The key of the leaf may sign nothing');
  // Malformed basic constraints make the leaf malformed too.
  basicConstraintsOf(leaf);
  if (required === undefined) return;
  const named = namesPurpose(leaf, required.purpose) ?? required.whenAbsent === 'accept';
  if (!named) refuseChain('The leaf is for another purpose');
  if (issuers.some((each) => namesPurpose(each, required.purpose) === false)) {
    refuseChain('An issuer is for another purpose');
  }
}

/** Judges all that needs the anchor; the signatures of the path below it are verified. */
function judgeBelow(anchor: Certificate, { path, purpose, atMs }: PathInput): void {
  const [leaf, ...issuers] = [...path, anchor];
  if (leaf === undefined) return;
  const faults = judgeCertificates([leaf, ...issuers], atMs);
  const invalid = faults.find(({ code }) => code === 'TRUST_CHAIN_INVALID');
  if (invalid !== undefined) refuseFault(invalid);
  judgeLeaf(leaf, issuers, purpose);
  const [late] = faults;
  if (late !== undefined) refuseFault(late);
}

const refuseFault = ({ code, index, message }: CertificateFault): never =>
  refuse(code, `Certificate ${index} of the path ${message}`);

/** Judges a path; malformed extensions make it an invalid chain. */
function judgeParsed(compute: () => ValidPath): Judgement<ValidPath> {
  return judge(() => {
    try {
      return compute();
    } catch (error) {
      if (!isAppError(error, 'invalid')) throw error;
      return refuseChain(error.message);
    }
  });
}

/**
 * Validates a certification path (RFC 5280 section 6.1) without building one: the path is in order, without its anchor
 * and without self-signed certificates, as the header `x5c` must be (OpenID4VC HAIP 1.0). Judged are names and signatures,
 * basic constraints, path lengths, key usage, extended key usage when a purpose is required, name constraints, critical
 * extensions, validity of every certificate with its anchor, and algorithms: P-256, P-384, RSA of 2048 bits or more, with
 * SHA-256 or better. Revocation is judged elsewhere.
 * @returns TRUST_CHAIN_INVALID, TRUST_CERT_EXPIRED, or TRUST_ISSUER_NOT_LISTED when no anchor issued the path
 */
export function validatePath(input: PathInput): Judgement<ValidPath> {
  const { path, anchors } = input;
  return judgeParsed(() => {
    const leaf = judgeOrder(path, anchors);
    const last = path.at(-1) ?? leaf;
    const issuers = anchors.filter((anchor) => isIssuedBy(last, anchor));
    const [first] = issuers;
    if (first === undefined) refuse('TRUST_ISSUER_NOT_LISTED', 'No trust anchor issued the certificate');
    // An anchor may have been renewed with the same key: one that is valid is enough.
    const anchor =
      issuers.find((each) => judge(() => judgeBelow(each, input)).violations.length === 0) ?? first;
    judgeBelow(anchor, input);
    const leafKey = findAcceptedKey(leaf) ?? refuseChain('The key of the leaf is not accepted');
    return { leaf, leafKey, anchor };
  });
}
