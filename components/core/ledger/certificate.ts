import { parsePublicKey } from '../crypto/public-key.ts';
import type { Verifier } from '../crypto/verify.ts';
import { decodeBase64Any } from '../encoding/base64.ts';
import { isAppError, type Violation } from '../errors/errors.ts';
import { type ValidationCodeName, validationViolation } from '../errors/validation-codes.ts';
import {
  CONSENSUS_TYPES,
  quorum,
  signBytes,
  sortMembers,
  type ValidatorMember,
  validatorSetHash,
} from './consensus.ts';

/** One precommit of a certificate. */
interface CertificateSignature {
  readonly validatorId: string;
  /** Index of the member in the set sorted by validatorId. */
  readonly index: number;
  readonly timestamp: string;
  /** Standard padded base64. */
  readonly signature: string;
}

/** Proof that a quorum of one validator set decided a docket in one round. */
export interface Certificate {
  readonly version: 1;
  readonly height: number;
  readonly round: number;
  readonly docketHash: string;
  readonly merkleRoot: string;
  readonly logRoot: string;
  readonly validatorSetHash: string;
  /** Ascending by index. */
  readonly signatures: readonly CertificateSignature[];
}

/** The register, height and set that a certificate is judged against. */
export interface CertificateContext {
  /** The validator set of the height, in any order. */
  readonly members: readonly ValidatorMember[];
  readonly networkId: string;
  readonly registerId: string;
  /** The policy's consensus.signatureThresholdMin at that height. */
  readonly signatureThresholdMin?: number | undefined;
  readonly verifier: Verifier;
  /** The docket of the certificate; absent to verify a certificate by itself. */
  readonly docket?: {
    readonly docketNumber: number;
    readonly hash: string;
    readonly merkleRoot: string;
    readonly logRoot: string;
    readonly validatorSetHash: string;
  };
}

function namesDocket(certificate: Certificate, docket: NonNullable<CertificateContext['docket']>): boolean {
  return (
    certificate.height === docket.docketNumber &&
    certificate.docketHash === docket.hash &&
    certificate.merkleRoot === docket.merkleRoot &&
    certificate.logRoot === docket.logRoot &&
    certificate.validatorSetHash === docket.validatorSetHash
  );
}

/** Whether the members are distinct, in ascending order, and each at its own index of the set. */
function isOrdered(signatures: readonly CertificateSignature[], sorted: readonly ValidatorMember[]): boolean {
  return signatures.every((each, place) => {
    const before = signatures[place - 1];
    const ascending = before === undefined || before.index < each.index;
    return ascending && sorted[each.index]?.validatorId === each.validatorId;
  });
}

function verifyPrecommit(
  certificate: Certificate,
  each: CertificateSignature,
  member: ValidatorMember,
  context: CertificateContext,
): boolean {
  const { docketHash, merkleRoot, logRoot } = certificate;
  const message = signBytes({
    type: CONSENSUS_TYPES.precommit,
    networkId: context.networkId,
    registerId: context.registerId,
    height: certificate.height,
    round: certificate.round,
    polRound: -1,
    docket: { docketHash, merkleRoot, logRoot },
    validatorSetHash: certificate.validatorSetHash,
    timestamp: each.timestamp,
  });
  const publicKey = parsePublicKey(member.algorithm, member.publicKey);
  const signature = decodeBase64Any(each.signature);
  return context.verifier.verify({ algorithm: member.algorithm, publicKey, message, signature });
}

function isSigned(
  certificate: Certificate,
  context: CertificateContext,
  sorted: readonly ValidatorMember[],
): boolean {
  try {
    return certificate.signatures.every((each) => {
      const member = sorted[each.index];
      return member !== undefined && verifyPrecommit(certificate, each, member, context);
    });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

/**
 * Judges a certificate against the validator set of its height: the set is the one it names, its members are distinct
 * and in order, every signature is a valid precommit of its one round, and they are at least a quorum. One bad
 * signature refuses the certificate, so nothing unverified is ever stored.
 */
export function verifyCertificate(certificate: Certificate, context: CertificateContext): Violation[] {
  const finding = (code: ValidationCodeName, field: string): Violation[] => [
    validationViolation(code, `certificate.${field}`),
  ];
  const sorted = sortMembers(context.members);
  if (certificate.version !== 1) return finding('VAL_CERT_001', 'version');
  if (certificate.validatorSetHash !== validatorSetHash(sorted))
    return finding('VAL_CERT_001', 'validatorSetHash');
  if (context.docket !== undefined && !namesDocket(certificate, context.docket)) {
    return finding('VAL_CERT_001', 'docketHash');
  }
  if (!isOrdered(certificate.signatures, sorted)) return finding('VAL_CERT_002', 'signatures');
  if (certificate.signatures.length < quorum(sorted.length, context.signatureThresholdMin)) {
    return finding('VAL_CERT_003', 'signatures');
  }
  return isSigned(certificate, context, sorted) ? [] : finding('VAL_CERT_002', 'signatures');
}
