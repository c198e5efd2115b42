import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { createRefusals } from '#kit/http/http.ts';

/** Error codes of this component, on which clients can match. */
const codes = {
  // Offers
  OFFER_NOT_FOUND: ['not_found', 'the offer does not exist'],
  OFFER_ENDED: ['gone', 'the offer was taken, was cancelled, or has expired'],
  OFFER_TAKEN: ['conflict', 'a wallet has taken the offer already'],
  CLAIMS_INVALID: ['invalid', 'the claims cannot be issued as asked'],
  ISSUER_WALLET_MISMATCH: ['unprocessable', 'the wallet is not the wallet of the organisation'],
  CERT_NOT_ENROLLED: [
    'unprocessable',
    'the organisation has no certificate; enrol one below /api/v1/trust/tenants',
  ],
  CERT_EXTERNAL_ANCHOR_UNAVAILABLE: [
    'unprocessable',
    'the organisation has no imported certificate that can be used; import one, or offer with x509-tenant',
  ],
  CERT_KEY_NOT_ELIGIBLE: [
    'unprocessable',
    'the wallet of the organisation has no P-256 key; RSA wallets have none',
  ],
  CERT_KEY_MISMATCH: [
    'unprocessable',
    'the certificate names another key than the organisation has; enrol again',
  ],
  WALLET_LOCKED: ['locked', 'the wallet of the organisation is locked'],
  WALLETS_UNAVAILABLE: ['unavailable', 'the wallet service cannot be reached at present'],
  REGISTER_UNKNOWN: ['unprocessable', 'the register does not exist, or is not for this service'],
  REGISTERS_UNAVAILABLE: ['unavailable', 'the register service cannot be reached at present'],
  CERTIFICATES_UNAVAILABLE: ['unavailable', 'the certificates of the organisation cannot be read at present'],
  // Presentations
  DCQL_INVALID: ['invalid', 'the query is not valid; `errors` says why'],
  REQUEST_NOT_FOUND: ['not_found', 'the request for presentations does not exist, or is not yours'],
  REQUEST_ENDED: ['gone', 'the request for presentations has expired or was answered'],
  VERIFIER_CERTIFICATE_CHANGING: [
    'unavailable',
    'the certificate that the request names is not here, as it is changing; try again, or ask anew',
  ],
  ALREADY_SUBMITTED: ['conflict', 'the request for presentations was answered before'],
  STATE_MISMATCH: ['invalid', 'state is missing, or belongs to another request'],
  RESPONSE_MODE_MISMATCH: ['invalid', 'the answer must come as the request says: in plain, or encrypted'],
  RESPONSE_ENCRYPTION: ['invalid', 'the encrypted answer cannot be opened'],
  PROFILE_WEAKER: ['invalid', 'haip-1.0 asks by x509_hash and takes answers by direct_post.jwt alone'],
  REDIRECT_URI_REFUSED: ['invalid', 'redirectUri must be https, or http of this machine'],
  REQUEST_OBJECT_INVALID: ['unprocessable', 'the request of the verifier is not valid'],
  REQUEST_HOST_MISMATCH: ['unprocessable', 'the request names a host that is not that of its certificate'],
  REQUEST_UNREACHABLE: ['unprocessable', 'the request object cannot be fetched from its address'],
  // Status
  CREDENTIAL_NOT_FOUND: ['not_found', 'the credential does not exist, or is not one of your organisation'],
  CREDENTIAL_WITHOUT_STATUS: ['conflict', 'the credential was issued without a status'],
  STATUS_TRANSITION: ['conflict', 'the status cannot be changed in this way'],
  STATUS_LIST_NOT_FOUND: ['not_found', 'the status list does not exist'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals(codes);

type CredentialErrorCode = keyof typeof codes;

interface RefusalOptions {
  readonly cause?: unknown;
  readonly message?: string;
  readonly retryAfterSeconds?: number;
}

/** Creates the error of a code; `message` replaces the text of the table. */
export function refusal(code: CredentialErrorCode, options: RefusalOptions = {}): AppError {
  const [kind, text] = codes[code];
  const { message, ...rest } = options;
  return new AppError(kind, code, message ?? text, rest);
}
