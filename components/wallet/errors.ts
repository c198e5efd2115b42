import { AppError, type ErrorKind } from '#core/errors/errors.ts';

/** Every refusal of this component that a client can match on. */
const REFUSALS = {
  WALLET_NOT_FOUND: ['not_found', 'the wallet does not exist'],
  WALLET_EXISTS: ['conflict', 'a wallet with this key exists already'],
  WALLET_LOCKED: ['locked', 'the wallet is locked'],
  WALLET_ACCESS_DENIED: ['forbidden', 'the caller may not use this wallet'],
  ORGANIZATION_WALLET_EXISTS: ['conflict', 'the organisation has its signing wallet already'],
  ORGANIZATION_KEY_TYPE: ['invalid', 'a wallet of an organisation needs derivable keys: ED25519 or NISTP256'],
  KEY_TYPE_NOT_RECOVERABLE: ['invalid', 'only ED25519 and NISTP256 wallets come back from a mnemonic'],
  ALGORITHM_MISMATCH: ['invalid', 'the algorithm is not the one of the wallet'],
  ALGORITHM_UNKNOWN: ['invalid', 'the algorithm is not ED25519, NISTP256 or RSA-4096'],
  UNKNOWN_DERIVATION_CONTEXT: ['invalid', 'the derivation context is unknown'],
  DERIVATION_CONTEXT_RESERVED: [
    'forbidden',
    'the key of this derivation context signs through the routes of its purpose alone',
  ],
  HYBRID_UNSUPPORTED: ['not_implemented', 'hybrid signatures are not supported'],
  PREHASH_LENGTH: ['invalid', 'pre-hashed data must be exactly 32 bytes'],
  PERSON_REQUIRED: ['forbidden', 'wallets belong to people and organisations; this token is neither'],
  GRANT_EXISTS: ['conflict', 'the subject holds an active grant on this wallet'],
  GRANT_NOT_FOUND: ['not_found', 'the subject holds no grant on this wallet'],
  GRANT_EXPIRY_PAST: ['invalid', 'expiresAt lies in the past'],
  OWNER_NOT_GRANTABLE: ['forbidden', 'an Administrator may not grant Owner'],
  SIGNING_KEY_UNKNOWN: ['not_found', 'the key is none of this validator'],
  SIGNING_KEYS_EXHAUSTED: ['conflict', 'the validator has as many keys as one may have'],
  SCOPE_REQUIRED: ['forbidden', 'a grant on a wallet of an organisation must name derivation contexts'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

export type WalletRefusal = keyof typeof REFUSALS;

export function refuse(code: WalletRefusal, details?: Readonly<Record<string, unknown>>): AppError {
  const [kind, message] = REFUSALS[code];
  return new AppError(kind, code, message, { details });
}
