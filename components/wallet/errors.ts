import { AppError, type ErrorKind, genericCode } from '#core/errors/errors.ts';
import { createRefusals } from '#kit/http/http.ts';

/** Error codes of this component, on which clients can match. */
const codes = {
  WALLET_NOT_FOUND: ['not_found', 'the wallet does not exist'],
  WALLET_EXISTS: ['conflict', 'a wallet with this key already exists'],
  WALLET_LOCKED: ['locked', 'the wallet is locked'],
  WALLET_NOT_LOCKED: ['conflict', 'only a locked wallet can be deleted; lock it first'],
  WALLET_LOCKED_TOO_RECENTLY: ['conflict', 'the wallet was locked too recently to be deleted'],
  WALLET_DELETED: ['gone', 'the wallet is deleted; its keys no longer exist'],
  WALLET_ACCESS_DENIED: ['forbidden', 'the caller may not use this wallet'],
  ORGANIZATION_WALLET_EXISTS: ['conflict', 'the organisation already has its signing wallet'],
  MASTER_KEY_MISSING: ['conflict', 'the organisation has no wallet to derive keys from; make its master key'],
  MASTER_KEY_CHANGED: ['conflict', 'the wallet of the organisation is not the one that the request names'],
  MASTER_KEY_IN_USE: ['conflict', 'keys were derived from the master key; it cannot be replaced'],
  MEMBER_UNKNOWN: ['unprocessable', 'the person is not an active member of the organisation'],
  CUSTODY_MODE_UNSUPPORTED: [
    'unprocessable',
    'keys of organisations are kept in custody: custodyMode Custodial',
  ],
  DERIVED_KEY_NOT_FOUND: ['not_found', 'the organisation has no such key'],
  KEY_NOT_ACTIVE: ['conflict', 'only an active key can be rotated'],
  KEY_ROTATED: ['forbidden', 'the key was rotated; it opens what was encrypted for it and signs nothing'],
  KEY_REVOKED: ['conflict', 'the key is revoked; its wallet stays locked'],
  DERIVED_KEY_NOT_GRANTABLE: ['forbidden', 'only its user uses a derived key of an organisation'],
  ORGANIZATION_KEY_TYPE: [
    'invalid',
    'a wallet of an organisation needs a key type with derivation: ED25519 or NISTP256',
  ],
  KEY_TYPE_NOT_RECOVERABLE: ['invalid', 'only ED25519 and NISTP256 wallets can be recovered from a mnemonic'],
  DELEGATION_INVALID: [
    'forbidden',
    'the delegated token is of another service, lacks the scope or names no person',
  ],
  ALGORITHM_MISMATCH: ['invalid', 'the algorithm does not match the key type of the wallet'],
  ALGORITHM_UNKNOWN: ['invalid', 'the algorithm is not ED25519, NISTP256 or RSA-4096'],
  UNKNOWN_DERIVATION_CONTEXT: ['invalid', 'the derivation context is unknown'],
  DERIVATION_CONTEXT_RESERVED: [
    'forbidden',
    'the key of this derivation context signs only through the routes of its purpose',
  ],
  HYBRID_UNSUPPORTED: ['not_implemented', 'hybrid signatures are not supported'],
  PREHASH_LENGTH: ['invalid', 'pre-hashed data must be exactly 32 bytes'],
  PERSON_REQUIRED: [
    'forbidden',
    'wallets belong to people and organisations; this token belongs to a service',
  ],
  GRANT_EXISTS: ['conflict', 'the subject already holds an active grant on this wallet; revoke it first'],
  GRANT_NOT_FOUND: ['not_found', 'the subject holds no grant on this wallet'],
  GRANT_EXPIRY_PAST: ['invalid', 'expiresAt is in the past'],
  OWNER_NOT_GRANTABLE: ['forbidden', 'an Administrator may not grant Owner'],
  SIGNING_KEY_UNKNOWN: ['not_found', 'this validator has no such key'],
  SIGNING_KEYS_EXHAUSTED: ['conflict', 'the validator has reached the maximum number of keys'],
  SCOPE_REQUIRED: ['forbidden', 'a grant on a wallet of an organisation must name derivation contexts'],
  DERIVATION_PATH_REFUSED: [
    'forbidden',
    'the derivation path is neither platform:register-control nor platform:docket-signing',
  ],
  SIGNING_CLAIM_MISSING: ['forbidden', 'the service token of the caller has no signing claim'],
  SIGNING_NOT_ALLOWED: ['forbidden', 'the caller may not sign on this path for this identity'],
  SIGNER_FENCED: ['conflict', 'a newer stream signs for this identity'],
  DOUBLE_SIGN_REFUSED: ['conflict', 'this position is already signed'],
  DERIVATION_UNSUPPORTED: ['unprocessable', 'an RSA wallet has one key and no derivation paths'],
  DECRYPT_FAILED: ['unprocessable', 'the data cannot be decrypted by this wallet'],
  LABEL_INVALID: ['invalid', 'the label must be one line of 1 to 80 characters that can be seen'],
  KB_HEADER_INVALID: ['invalid', 'the header is not that of a key-binding JWT'],
  KB_ALG_MISMATCH: ['invalid', 'the alg of the header is not that of the holder key'],
  KB_PAYLOAD_INVALID: ['invalid', 'the payload is not that of a key-binding JWT'],
  CREDENTIAL_INVALID: ['unprocessable', 'the credential cannot be verified'],
  CREDENTIAL_ISSUER_UNKNOWN: ['unprocessable', 'the key of the issuer cannot be found'],
  CREDENTIAL_NOT_FOUND: ['not_found', 'the wallet has no such credential'],
  CREDENTIALS_FULL: ['conflict', 'the wallet has as many credentials as a wallet may have; delete some'],
  CREDENTIALS_UNAVAILABLE: ['unavailable', 'issuers and verifiers cannot be judged at present'],
  CERT_KEY_NOT_ELIGIBLE: [
    'unprocessable',
    'certificates need an ED25519 or NISTP256 wallet of an organisation, which has a P-256 key',
  ],
  TX_NOT_FOUND: ['not_found', 'the register holds no such sealed transaction'],
  NOT_A_RECIPIENT: ['forbidden', 'the transaction has no content for this wallet'],
  FILE_NOT_FOUND: ['not_found', 'the content for this wallet has no such file'],
  FILE_PURGED: ['gone', 'the content of the file was deleted'],
  FILE_CORRUPT: ['unprocessable', 'the stored content is not that of the file'],
  FILES_UNAVAILABLE: ['unavailable', 'the content of files cannot be read at present'],
  REGISTER_UNAVAILABLE: ['unavailable', 'the register service cannot be reached at present'],
  DOWNLOAD_STALLED: ['timeout', 'the reader took nothing for too long; the download was aborted'],
  DOWNLOAD_LIMIT: ['rate_limited', 'too many downloads are running; try again later'],
  KEY_GENERATION_BUSY: ['rate_limited', 'too many RSA keys are being generated; try again later'],
  KEK_INVALID: ['internal', 'the key-encryption key has a wrong length'],
  KEK_UNKNOWN: ['internal', 'a wallet is wrapped under another key-encryption key'],
  CUSTODY_TAMPERED: ['internal', 'stored key material cannot be decrypted'],
  CUSTODY_MISSING: ['internal', 'the wallet has no key material'],
  CUSTODY_KEY_MISMATCH: ['internal', 'stored key material does not belong to the wallet'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Codes of what the credential service judges for this service. */
const judgedCodes = {
  DCQL_INVALID: ['invalid', 'the query of the verifier is not valid'],
  REQUEST_OBJECT_INVALID: ['unprocessable', 'the request of the verifier is not valid'],
  REQUEST_HOST_MISMATCH: ['unprocessable', 'the request names a host that is not that of its certificate'],
  REQUEST_UNREACHABLE: ['unprocessable', 'the request object cannot be fetched from its address'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Whether a code says what is wrong with the request of a verifier. */
export function isJudged(code: string): boolean {
  return Object.hasOwn(judgedCodes, code);
}

/** Codes of input that the core parses. */
const inputCodes = {
  INVALID_BASE64: ['invalid', 'the text is not base64'],
  INVALID_DERIVATION_PATH: ['invalid', "the path is not of the form m/44'/0'"],
  INVALID_MNEMONIC: ['invalid', 'the words are no English mnemonic with a right checksum'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals({ ...codes, ...judgedCodes, ...inputCodes });

/** Refusals of every route about one wallet of the caller. */
export const walletRefusals = refusals('WALLET_NOT_FOUND', 'WALLET_ACCESS_DENIED', 'PERSON_REQUIRED');

export type WalletErrorCode = keyof typeof codes;

interface RefusalOptions {
  readonly cause?: unknown;
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
}

/** Creates the error of a code; `message` replaces the text of the table. */
export function refusal(code: WalletErrorCode, options: RefusalOptions = {}): AppError {
  const [kind, text] = codes[code];
  const { message, ...rest } = options;
  return new AppError(kind, code, message ?? text, rest);
}

/** The error of a malformed request. */
export function invalid(message: string): AppError {
  return new AppError('invalid', genericCode('invalid'), message);
}
