import { AppError, type ErrorKind, type Violation } from './errors.ts';

/** HTTP statuses of violations. */
type ValidationStatus = 400 | 403 | 413 | 422 | 503;

interface ValidationCode {
  readonly meaning: string;
  readonly status: ValidationStatus;
}

const code = (status: ValidationStatus, meaning: string): ValidationCode => ({ meaning, status });

/**
 * Every validation code, with one meaning and one status each. Statuses: structure, hash, signature and time 400;
 * permission 403; size 413; meaning 422.
 */
export const VALIDATION_CODES = {
  VAL_STRUCT_001: code(400, 'A required member is missing or empty'),
  VAL_STRUCT_002: code(400, 'TransactionId is not 64 hexadecimal characters'),
  VAL_STRUCT_003: code(400, 'RegisterId is not 32 hexadecimal characters'),
  VAL_STRUCT_004: code(400, 'PayloadHash is not 64 hexadecimal characters'),
  VAL_STRUCT_005: code(400, 'There is no signature, or there are too many'),
  VAL_STRUCT_006: code(400, 'CreatedAt or ExpiresAt is not a timestamp'),
  VAL_STRUCT_007: code(400, 'A member has the wrong type'),
  VAL_STRUCT_008: code(400, 'PreviousTransactionId is malformed or names the transaction itself'),
  VAL_STRUCT_009: code(400, 'Recipients hold an address that is malformed, repeated, or one too many'),
  VAL_STRUCT_010: code(400, 'BlueprintId, ActionId or Metadata is too long or holds forbidden characters'),
  VAL_STRUCT_011: code(400, 'The register requires a transaction id derived from the envelope'),
  VAL_STRUCT_012: code(400, 'The JSON text is malformed, ambiguous or nested too deeply'),
  VAL_SIZE_001: code(413, 'The transaction is larger than the register allows'),
  VAL_HASH_001: code(400, 'PayloadHash is not the hash of the payload'),
  VAL_SIG_001: code(400, 'The signature algorithm is unknown or not enabled'),
  VAL_SIG_002: code(400, 'The signature does not verify'),
  VAL_SIG_003: code(400, 'The public key or the signature is malformed'),
  VAL_TIME_001: code(400, 'CreatedAt lies in the future'),
  VAL_TIME_002: code(400, 'CreatedAt is too old'),
  VAL_TIME_003: code(400, 'The transaction is expired'),
  VAL_CHAIN_001: code(422, 'The previous transaction is not known'),
  VAL_CHAIN_002: code(422, 'The previous transaction belongs to another register'),
  VAL_CHAIN_003: code(422, 'The docket does not follow the head of the register'),
  VAL_CHAIN_004: code(422, 'The transaction is sealed already'),
  VAL_CHAIN_FORK: code(422, 'The previous transaction has a successor already'),
  VAL_CHAIN_TRANSIENT: code(503, 'The chain could not be read; try again'),
  VAL_REPLAY_001: code(422, 'The sender submitted this payload with this predecessor already'),
  VAL_REPLAY_002: code(422, 'SequenceNumber is not the next one'),
  VAL_REPLAY_003: code(422, 'SequenceNumber is malformed'),
  VAL_REPLAY_004: code(503, 'The sequence could not be read; try again'),
  VAL_SCHEMA_001: code(422, 'The payload does not match the schema of the action'),
  VAL_SCHEMA_002: code(422, 'The schema of the action does not compile'),
  VAL_SCHEMA_003: code(422, 'The blueprint is not known'),
  VAL_SCHEMA_004: code(422, 'The action is not part of the blueprint'),
  VAL_SCHEMA_005: code(503, 'The blueprint could not be read; try again'),
  VAL_POLICY_001: code(422, 'The crypto policy of the register does not accept the algorithm'),
  VAL_POLICY_002: code(422, 'The crypto policy of the register requires another algorithm'),
  VAL_POLICY_003: code(422, 'Development mode cannot be turned on again'),
  VAL_POLICY_004: code(422, 'The policy is not the next version of the one in force'),
  VAL_POLICY_005: code(422, 'The policy is malformed or asks for what is not supported'),
  VAL_POLICY_006: code(422, 'The number of validators would leave the range of the policy'),
  VAL_POLICY_007: code(422, 'The crypto policy would shut out a key that governs the register'),
  VAL_PARTICIPANT_001: code(422, 'The sender is not a participant of the action'),
  VAL_PARTICIPANT_002: code(422, 'The address belongs to another active participant'),
  VAL_PERM_001: code(403, 'The signer may not submit control transactions'),
  VAL_PERM_002: code(403, 'The signer may not submit a genesis transaction'),
  VAL_PERM_003: code(403, 'The role of the signer does not allow the operation'),
  VAL_PERM_004: code(422, 'The target of the operation is not on the roster'),
  VAL_PERM_005: code(422, 'The operation would remove the last owner'),
  VAL_PERM_006: code(422, 'The target may not hold the role'),
  VAL_PERM_007: code(403, 'The register has no roster'),
  VAL_PERM_008: code(403, 'Too few signers approved the operation'),
  VAL_PERM_009: code(422, 'The roster changed since the proposal'),
  VAL_PERM_010: code(403, 'The target has not accepted the transfer'),
  VAL_PERM_011: code(422, 'The change would leave fewer operational validators than a quorum'),
  VAL_PERM_012: code(422, 'The proposal is not known or no longer open'),
  VAL_PERM_013: code(422, 'The operation is not yet or no longer valid at the time of the docket'),
  VAL_PERM_014: code(422, 'The operation has been enacted already'),
  VAL_PERM_015: code(422, 'No vote of the transaction counts'),
  VAL_PERM_016: code(422, 'The docket changes more validators than one docket may'),
  VAL_PERM_017: code(422, 'The validator is not known, or its status or key forbids the operation'),
  VAL_PERM_018: code(422, 'The register can take no further entry of that kind'),
  VAL_PERM_019: code(422, 'The evidence does not prove what it is given for'),
  VAL_BP_001: code(422, 'The action does not start the blueprint'),
  VAL_BP_002: code(422, 'The sender is not the one the blueprint names'),
  VAL_BP_003: code(422, 'The action cannot be reached from the previous one'),
  VAL_BP_010: code(422, 'The starting action has a participant bound before'),
  VAL_BP_VERSION_001: code(422, 'The version pin of the blueprint does not resolve'),
  VAL_REV_001: code(422, 'The revocation payload is malformed'),
  VAL_REV_002: code(422, 'The transaction to revoke is not known'),
  VAL_REV_003: code(422, 'The transaction is revoked already'),
  VAL_REV_004: code(422, 'A revocation cannot be revoked'),
  VAL_REV_005: code(403, 'The signer may not revoke the transaction'),
  VAL_CERT_001: code(422, 'The certificate does not belong to the docket'),
  VAL_CERT_002: code(422, 'The certificate holds a signature that is malformed or does not verify'),
  VAL_CERT_003: code(422, 'The certificate has fewer votes than the quorum'),
} as const satisfies Readonly<Record<string, ValidationCode>>;

export type ValidationCodeName = keyof typeof VALIDATION_CODES;

const STATUS_KINDS: Readonly<Record<ValidationStatus, ErrorKind>> = {
  400: 'invalid',
  403: 'forbidden',
  413: 'too_large',
  422: 'unprocessable',
  503: 'unavailable',
};

/** Whether a text is one of the codes of the table. */
export function isValidationCode(text: string): text is ValidationCodeName {
  return Object.hasOwn(VALIDATION_CODES, text);
}

/** A violation with a code of the table. Its message is the meaning of the code unless a more specific one is given. */
export function validationViolation(name: ValidationCodeName, field?: string, message?: string): Violation {
  const found = {
    code: name,
    message: message ?? VALIDATION_CODES[name].meaning,
    severity: 'Error',
  } as const;
  return field === undefined ? found : { ...found, field };
}

/** The refusal for a list of violations: kind and code of the first one. */
export function validationError(violations: readonly Violation[]): AppError {
  const first = violations[0];
  if (first === undefined) return new AppError('internal', 'INTERNAL_ERROR', 'No violation to report');
  const status = isValidationCode(first.code) ? VALIDATION_CODES[first.code].status : 400;
  return new AppError(STATUS_KINDS[status], first.code, first.message, { violations });
}
