import { AppError, type AppErrorOptions, type ErrorKind } from '#core/errors/errors.ts';
import { createRefusals, type DeclaredRefusal } from '#kit/http/http.ts';

/** The error codes that this component answers, by code: kind and text. */
const codes = {
  BAD_GATEWAY: ['bad_gateway', 'A validator returned a malformed answer'],
  BATCH_REGISTER: ['invalid', 'All transactions of a batch are for one register'],
  BATCH_TOO_LARGE: ['too_large', 'The batch has too many transactions'],
  CHECKPOINT_DIVERGENT: ['conflict', 'This validator has another root for this size'],
  CHECKPOINT_UNKNOWN: ['unavailable', 'This validator does not hold the root of this size'],
  CONSENSUS_TIMEOUT: ['timeout', 'No docket was sealed in time'],
  DOCKET_NOT_JUDGED: ['internal', 'A docket holds a transaction that may not be sealed'],
  FORBIDDEN: ['forbidden', 'Only a system administrator may do this'],
  HISTORY_BUSY: ['unavailable', 'Another call is reading the log; retry'],
  INVALID_ENVELOPE: ['invalid', 'A validator sent a malformed message'],
  INVALID_REPORT: ['bad_gateway', 'The report of another validator has fields out of bounds'],
  INVALID_REQUEST: ['invalid', 'The request is malformed'],
  JOURNAL_DAMAGED: ['internal', 'An entry of the log cannot be decoded'],
  JOURNAL_UNAVAILABLE: ['unavailable', 'The log of the validator cannot be written'],
  KEYS_MALFORMED: ['bad_gateway', 'The register service sent malformed keys of a register'],
  KEYS_TOO_LARGE: ['unavailable', 'The memory for keys has no room for the keys of the register'],
  MEMPOOL_FULL: ['rate_limited', 'The register has no room for more transactions'],
  NO_PENDING_TRANSACTIONS: ['conflict', 'No transaction is pending'],
  QUORUM_UNAVAILABLE: ['unavailable', 'The validator does not run the register now; retry'],
  QUORUM_WOULD_BREAK: [
    'conflict',
    'Without these members no quorum remains; repeat the request with force=true to stop them all the same',
  ],
  REGISTER_BEHIND: ['unavailable', 'The register is behind the register service'],
  REGISTER_HALTED: ['conflict', 'The register is halted and needs an operator'],
  REGISTER_NOT_FOUND: ['not_found', 'This validator does not run the register'],
  REGISTER_NOT_READY: ['unavailable', 'The register is not ready'],
  SEALING_STOPPED: ['unavailable', 'This validator has stopped sealing'],
  SENDER_NOT_AUTHORIZED: ['forbidden', 'The sender may not sign this transaction'],
  SIGNER_FENCED: ['forbidden', 'The signing component holds another key for this validator'],
  SIGNER_UNAVAILABLE: ['unavailable', 'The signing component is not reachable'],
  SUBSCRIPTION_REQUIRED: ['forbidden', "The caller's organisation does not subscribe to this register"],
  TOO_MANY_QUESTIONS: ['rate_limited', 'too many requests or bytes in one second; retry later'],
  TX_CONFLICT: ['conflict', 'Another transaction has this id'],
  UNAUTHORIZED: ['unauthenticated', 'The access token of the caller is missing'],
  VALIDATION_STOPPED: ['conflict', 'Validation of the register is stopped; start it first'],
  VALIDATOR_BARRED: ['unavailable', 'The validator sent too many faulty messages and is ignored for a while'],
  VALIDATOR_DRAINING: [
    'unavailable',
    'This validator is drained; submit the transaction to another validator',
  ],
  VALIDATOR_NOT_FOUND: ['not_found', 'The validator is unknown'],
  VALIDATOR_PAUSED: ['unavailable', 'This validator is Paused: the volume of its log is full'],
  VALIDATOR_UNAVAILABLE: ['unavailable', 'No validator of the register can be reached'],
  VAL_CHAIN_TRANSIENT: ['unavailable', 'The register service answered only partly; retry'],
  VAL_STRUCT_005: ['invalid', 'Genesis is not signed'],
  VAL_STRUCT_012: ['invalid', 'The record or payload of the transaction is malformed'],
  VAL_TIME_002: ['invalid', 'The transaction is outside its validity period'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Codes of violations and of failed calls, which are raised where they are found. */
const otherCodes = {
  CERTIFICATE_INVALID: [
    'invalid',
    'The certificate does not prove a decision of the validators of the register',
  ],
  DOCKET_NUMBER_SEQUENCE: ['invalid', 'The docket number is not the one after the previous docket'],
  GENESIS_REQUIRES_NO_PREVIOUS: ['invalid', 'Docket 0 has no previous docket'],
  HASH_MISMATCH: ['invalid', 'A hash differs from the recomputed one'],
  IMMUTABLE_FIELD: ['invalid', 'The setting is fixed at start'],
  MERKLE_MISMATCH: ['invalid', 'A root differs from the recomputed one'],
  POLICY_CONTROLLED: ['invalid', 'The policy of each register decides this value'],
  PREVIOUS_DOCKET_REQUIRED: ['invalid', 'The previous docket is unknown'],
  PREVIOUS_HASH_MISMATCH: ['invalid', 'previousHash is not the hash of the previous docket'],
  REGISTER_ID_REQUIRED: ['invalid', 'The register id is not 32 hexadecimal characters'],
  SIGNATURE_INVALID: ['invalid', 'A signature does not verify'],
  TIMEOUT: ['timeout', 'Another service did not answer in time'],
  TIMESTAMP_NOT_AFTER_PREVIOUS: ['invalid', 'The timestamp is not after that of the previous docket'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals({ ...codes, ...otherCodes });

const violationsOf = (kind: ErrorKind, message: string): DeclaredRefusal => ({
  code: 'VAL_*',
  kind,
  message,
});

/** Violations of a transaction: `code` is that of the first one, `errors` lists all of them. */
const violations: readonly DeclaredRefusal[] = [
  violationsOf('invalid', 'structure, hash, signature and time'),
  violationsOf('forbidden', 'permissions'),
  violationsOf('too_large', 'size'),
  violationsOf('unprocessable', 'chain, replay, policy, participants and governance'),
  violationsOf('unavailable', 'The chain cannot be read at present; retry'),
];

/** Refusals of calls to the register service, and of those to a member of a register. */
export const ofCalls = refusals('TIMEOUT', 'BAD_GATEWAY');

/** Refusals of a submission, by this validator or by the member that it was forwarded to. */
export const ofSubmissions: readonly DeclaredRefusal[] = [
  ...violations,
  ...ofCalls,
  ...refusals('JOURNAL_UNAVAILABLE', 'MEMPOOL_FULL', 'REGISTER_BEHIND', 'REGISTER_NOT_FOUND'),
  ...refusals('REGISTER_NOT_READY', 'SEALING_STOPPED', 'SUBSCRIPTION_REQUIRED', 'TX_CONFLICT'),
  ...refusals('VALIDATOR_DRAINING', 'VALIDATOR_PAUSED', 'VALIDATOR_UNAVAILABLE'),
];

/** Refusals of a docket that a caller submits. */
export const ofJudgedDockets: readonly DeclaredRefusal[] = [
  violationsOf('invalid', 'The record of a transaction violates a rule'),
  ...refusals('CERTIFICATE_INVALID', 'DOCKET_NUMBER_SEQUENCE', 'GENESIS_REQUIRES_NO_PREVIOUS'),
  ...refusals('HASH_MISMATCH', 'MERKLE_MISMATCH', 'PREVIOUS_DOCKET_REQUIRED', 'PREVIOUS_HASH_MISMATCH'),
  ...refusals('REGISTER_ID_REQUIRED', 'SIGNATURE_INVALID', 'TIMESTAMP_NOT_AFTER_PREVIOUS'),
];

type ValidatorErrorCode = keyof typeof codes;

interface FailureOptions extends AppErrorOptions {
  /** Replaces the text of the table. */
  readonly message?: string;
}

/** The error of a code. */
export function failure(code: ValidatorErrorCode, options: FailureOptions = {}): AppError {
  const [kind, text] = codes[code];
  const { message = text, ...rest } = options;
  return new AppError(kind, code, message, rest);
}
