import { AppError } from '../errors/errors.ts';

/** Slot of each named derivation context. The table is closed, because a typo would derive a valid but wrong key. */
const DERIVATION_SLOTS = {
  'platform:register-attestation': 100,
  'platform:register-control': 101,
  'platform:docket-signing': 102,
  'platform:blueprint-publish': 103,
  'platform:persona-vault': 104,
  'platform:credential-holder-binding': 105,
  'platform:haip-issuer-signing': 106,
  'platform:tenant-ca-signing': 107,
  'platform:citizen-holder': 108,
  'platform:citizen-status-signing': 109,
  'platform:payload-encryption': 110,
  'platform:status-list-signing': 111,
} as const;

type DerivationContext = keyof typeof DERIVATION_SLOTS;

/** The context of dockets; the signing component has `platform:register-control` besides (specification document 2, section 5). */
export const DOCKET_SIGNING = 'platform:docket-signing' satisfies DerivationContext;
/** The context with which an owner signs a register attestation. */
export const REGISTER_ATTESTATION = 'platform:register-attestation' satisfies DerivationContext;

/** Whether a text is the name of a context. */
export function isDerivationContext(text: string): text is DerivationContext {
  return Object.hasOwn(DERIVATION_SLOTS, text);
}

/**
 * Parses the name of a context.
 * @throws AppError invalid UNKNOWN_DERIVATION_CONTEXT
 */
export function parseDerivationContext(text: string): DerivationContext {
  if (isDerivationContext(text)) return text;
  throw new AppError('invalid', 'UNKNOWN_DERIVATION_CONTEXT', 'The derivation context is not known');
}

/** The path of a wallet key: slot 0 is the primary key. */
export function walletKeyPath(slot: number): string {
  return `m/44'/0'/0'/0'/${slot}'`;
}

/** The path of the key of a context. */
export function contextKeyPath(context: DerivationContext): string {
  return walletKeyPath(DERIVATION_SLOTS[context]);
}
