import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { createRefusals } from '#kit/http/http.ts';

/** Error codes of this component beyond the generic ones; the kind determines the HTTP status. */
const table = {
  INVALID_CREDENTIALS: ['unauthenticated', 'The e-mail address or the password is wrong.'],
  insufficient_user_authentication: [
    'unauthenticated',
    'The operation needs a proof of the last 300 seconds: X-Auth-Challenge, or a new sign-in.',
  ],
  proof_tier_insufficient: ['forbidden', 'The proof is too weak for the operation.'],
  LAST_AUTH_METHOD: ['conflict', 'The last means of signing in cannot be removed.'],
  TIER_NOT_ENTITLED: ['forbidden', 'The account is not entitled to the requested tier.'],
  INVALID_REFRESH_TOKEN: ['unauthenticated', 'The refresh token is invalid, used or expired.'],
  SESSION_ENDED: ['unauthenticated', 'The session of the token has ended: sign in again.'],
  NOT_A_MEMBER: [
    'forbidden',
    'The caller is not a member of the organisation, or the organisation is not active.',
  ],
  EMAIL_NOT_VERIFIED: ['forbidden', 'The e-mail address of the account is not verified.'],
  ORG_LIMIT_REACHED: ['forbidden', 'The account has reached its limit of created organisations.'],
  SUBDOMAIN_CONFLICT: ['conflict', 'The subdomain is taken.'],
  SUBDOMAIN_RESERVED: ['invalid', 'The subdomain is reserved.'],
  ALREADY_A_MEMBER: ['conflict', 'The user already belongs to the organisation.'],
  PASSWORD_REFUSED: ['invalid', 'The password does not satisfy the policy.'],
  UNKNOWN_ROLE: ['invalid', 'The role does not exist.'],
  ROLE_NOT_GRANTABLE: ['forbidden', 'The caller may not grant this role.'],
  FOREIGN_ORGANIZATION: ['forbidden', 'The organisation is not that of the caller.'],
  ORGANIZATION_NOT_FOUND: ['not_found', 'The organisation does not exist.'],
  ORGANIZATION_DELETED: ['gone', 'The organisation was deleted.'],
  ORGANIZATION_BOUND: ['conflict', 'The organisation is managed by another resource.'],
  PLATFORM_ORG_PROTECTED: [
    'conflict',
    'The platform’s own organisations cannot be suspended, deleted or adopted.',
  ],
  PUBLIC_ORG_DISABLED: [
    'conflict',
    'The platform settings keep the Public organisation closed; PUT /api/platform/settings/public-org opens it.',
  ],
  IMMUTABLE_FIELD: ['conflict', 'The change concerns immutable fields of the organisation.'],
  ADOPTION_MISMATCH: ['conflict', 'The organisation to adopt differs from the resource.'],
  USER_OUTRANKS: ['forbidden', 'The user ranks above the caller.'],
  LAST_ADMINISTRATOR: ['conflict', 'The organisation would have no active administrator left.'],
  INBOX_ENTRY_NOT_FOUND: ['not_found', 'The inbox entry does not exist.'],
  USER_NOT_FOUND: ['not_found', 'The user does not exist.'],
  PAGE_FILE_NOT_FOUND: ['not_found', 'The pages have no such file.'],
  INVALID_LOGIN_TOKEN: ['unauthenticated', 'The login token is unknown, used or expired: sign in again.'],
  WRONG_SECOND_FACTOR: ['unauthenticated', 'The code is wrong or was used.'],
  PASSKEY_ROUTE: ['invalid', 'A passkey is confirmed at POST /api/auth/verify-passkey.'],
  FACTOR_NOT_ENABLED: ['invalid', 'The account has not enabled this second factor.'],
  TOTP_ALREADY_ENABLED: ['conflict', 'The account has an authenticator app; remove it first.'],
  TOTP_NOT_SET_UP: ['invalid', 'No set-up waits for its first code: begin with POST /api/totp/setup.'],
  WRONG_CODE: ['invalid', 'The code is wrong.'],
  CODE_EXPIRED: ['gone', 'No code waits, or it has expired.'],
  EMAIL_NOT_USABLE: ['invalid', 'The account has no verified e-mail address.'],
  PHONE_NOT_VERIFIED: ['conflict', 'The account has no verified telephone number.'],
  SMS_UNAVAILABLE: ['not_found', 'Text messages are not configured.'],
  PASSKEYS_UNAVAILABLE: ['not_found', 'The installation has no domain that passkeys could be made for.'],
  INVALID_ATTESTATION: ['invalid', 'The passkey was not made as asked, or too late.'],
  KNOWN_CREDENTIAL: ['conflict', 'The passkey is known already.'],
  TOO_MANY_PASSKEYS: ['conflict', 'The account has ten passkeys; remove one first.'],
  UNKNOWN_CREDENTIAL: ['unauthenticated', 'No account has the passkey.'],
  INVALID_ASSERTION: ['unauthenticated', 'The passkey was not accepted.'],
  PASSKEY_NOT_FOUND: ['not_found', 'The account has no such passkey.'],
  ADDRESS_TAKEN: ['conflict', 'The e-mail address has an account: sign in and add the passkey there.'],
  NoMethodAvailable: ['invalid', 'The account has no method that is strong enough for the operation.'],
  WRONG_PROOF: ['unauthenticated', 'The proof is wrong, or was used.'],
  SESSION_NOT_FOUND: ['not_found', 'The account has no such session.'],
  TOKEN_UNKNOWN: ['invalid', 'The token is unknown.'],
  TOKEN_USED: ['invalid', 'The token was used already.'],
  TOKEN_EXPIRED: ['gone', 'The token has expired.'],
  UNKNOWN_SUBDOMAIN: ['invalid', 'No organisation has the subdomain.'],
  REGISTRATION_CLOSED: ['forbidden', 'The organisation takes no registrations.'],
  DISCOVERY_FAILED: ['invalid', 'The issuer cannot be used.'],
  DISCOVERY_REQUIRED: ['conflict', 'The provider could not be read yet: discover or save it again.'],
  IDP_NOT_FOUND: ['not_found', 'The organisation has no identity provider.'],
  CLIENT_SECRET_REQUIRED: ['invalid', 'A new issuer needs its client secret.'],
  UNKNOWN_PROVIDER: ['invalid', 'The provider is unknown, or not configured.'],
  INVALID_STATE: ['invalid', 'The visit at the provider is unknown, used, expired, or of another browser.'],
  PROVIDER_REFUSED: ['invalid', 'The provider gave no answer that could be accepted.'],
  RETURN_ADDRESS_REFUSED: ['invalid', 'The destination is not allowed.'],
  ProviderUnverified: ['invalid', 'The provider has not verified the e-mail address of the person.'],
  ExistingUnverified: [
    'invalid',
    'An account with the e-mail address waits for its verification: confirm the address first.',
  ],
  NoExistingAccount: ['invalid', 'No account has this identity: sign up first.'],
  ORGANIZATION_SIGN_IN_UNAVAILABLE: ['not_found', 'No such organisation has an identity provider in use.'],
  SESSION_CHANGED: ['unauthenticated', 'The visit at the provider was begun by another account.'],
  IDENTITY_LINKED: ['conflict', 'The identity belongs to another account.'],
  LINK_NOT_FOUND: ['not_found', 'The account has no such connection.'],
  INVALID_LINK_TOKEN: ['unauthenticated', 'The link-pending token is unknown, used or expired.'],
  INVALID_CHALLENGE: ['unauthenticated', 'The challenge token is missing, unknown, used or expired.'],
  WRONG_OPERATION: ['forbidden', 'The challenge token is for another operation, or another account.'],
  PROFILE_ALREADY_COMPLETE: ['conflict', 'The profile is complete.'],
  PASSWORD_ALREADY_SET: ['conflict', 'The account has a password; change it instead.'],
  PASSWORD_NOT_SET: ['conflict', 'The account has no password.'],
  WALLET_NOT_FOUND: ['not_found', 'The organisation has no such wallet.'],
  WALLET_LOCKED: ['locked', 'The wallet of the organisation is locked; unlock it first.'],
  WALLETS_UNAVAILABLE: ['unavailable', 'The wallet service cannot be reached at present.'],
  CERT_KEY_NOT_ELIGIBLE: [
    'unprocessable',
    'The wallet of the organisation has no P-256 key: use one with the key type ED25519 or NISTP256.',
  ],
  CERT_KEY_MISMATCH: [
    'unprocessable',
    'The certificate is for another key: request one with the result of POST .../csr of this organisation.',
  ],
  CERT_CHAIN_INVALID: [
    'unprocessable',
    'The certificates form no valid chain: send the leaf as certificatePem and the CAs above it as chainPem.',
  ],
  CERT_EXPIRED: [
    'unprocessable',
    'A certificate of the chain is expired or not valid yet: request a new one.',
  ],
  CERT_UNSUITABLE: [
    'unprocessable',
    'The certificate may not sign credentials: request one whose key usage includes digitalSignature.',
  ],
  CERT_EXTERNAL_ANCHOR_UNAVAILABLE: [
    'unprocessable',
    'The organisation has no imported certificate in use: import one with POST .../certificates/import.',
  ],
  CERT_NOT_ENROLLED: [
    'not_found',
    'The organisation has no certificate of its own authority in use: POST .../enrol issues one.',
  ],
  CERTIFICATE_NOT_FOUND: ['not_found', 'The organisation has no such certificate.'],
  TRUST_ANCHOR_NOT_FOUND: [
    'not_found',
    'The organisation has no authority of its own: POST .../provision makes one.',
  ],
  CRL_UNAVAILABLE: ['unavailable', 'The revocation list cannot be signed at present.'],
  TRUSTLIST_MALFORMED: ['invalid', 'The document is no trust list.'],
  TRUSTLIST_SIGNATURE_INVALID: ['invalid', 'The trust list is not signed by an accepted signer.'],
  TRUSTLIST_SOURCE_UNAVAILABLE: ['invalid', 'The source gave no document.'],
  TRUSTLIST_SEQUENCE_REGRESSION: ['conflict', 'The trust list is not newer than the active one.'],
  TRUSTLIST_IMPORT_BUSY: ['unavailable', 'Other trust lists are being read: try again.'],
  TRUSTLIST_UNAVAILABLE: ['not_found', 'No trust list with this id is loaded.'],
  TRUSTLIST_STALE: [
    'conflict',
    'The trust list should have been updated by now, and stale lists are refused.',
  ],
  SHARED_SECRETS_DISABLED: ['conflict', 'shared secrets are disabled'],
  INVALID_CLIENT: ['unauthenticated', 'The client is unknown or its credential is wrong.'],
  PRINCIPAL_PROTECTED: ['invalid', 'Only principals of validators can be revoked.'],
  UNKNOWN_SCOPE: ['invalid', 'One of the scopes does not exist.'],
  SERVICE_TOKEN_REFUSED: ['unavailable', 'the principal of this service is not active'],
  NO_SIGNING_KEY: ['internal', 'no current signing key'],
  PROTECTION_KEY_MISMATCH: [
    'internal',
    'the protection key cannot decrypt the signing keys of this database; use the key that the installation started with',
  ],
  SECRET_FILE_OPEN: ['internal', 'a secret file is accessible to other users; set its mode to 0640'],
  SECRET_FILE_MALFORMED: ['internal', 'a secret file does not hold 32 bytes as base64url'],
  CURSOR_UNREADABLE: ['internal', 'the stored cursor is malformed'],
  EVENT_UNREADABLE: ['internal', 'an event of the wallet service has no cursor'],
  ROW_MISSING: ['internal', 'the account was not inserted'],
  ROW_UNREADABLE: ['internal', 'a stored row has an unknown value'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Codes of every component, for routes whose declaration does not imply them. */
const genericCodes = {
  RATE_LIMITED: ['rate_limited', 'Too many requests; see Retry-After.'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals({ ...table, ...genericCodes });

const publicOrganizationRefusal = {
  PUBLIC_ORG_DISABLED: ['forbidden', 'The Public organisation is closed.'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares the refusal of sign-ups while the Public organisation is closed. */
export const publicOrganizationRefusals = createRefusals(publicOrganizationRefusal);

/** Refuses a sign-up; the same code as for operators, to whom it is a conflict with the platform settings. */
export function publicOrganizationClosed(): AppError {
  const [kind, text] = publicOrganizationRefusal.PUBLIC_ORG_DISABLED;
  return new AppError(kind, 'PUBLIC_ORG_DISABLED', text);
}

type TenantCode = keyof typeof table;

interface RefusalOptions {
  readonly cause?: unknown;
  readonly message?: string;
  readonly details?: Record<string, unknown>;
  readonly retryAfterSeconds?: number;
}

/** Creates the error of a code; `message` replaces the text of the table. */
export function refusal(code: TenantCode, options: RefusalOptions = {}): AppError {
  const [kind, text] = table[code];
  const { message, ...rest } = options;
  return new AppError(kind, code, message ?? text, rest);
}
