import { type ContextName, DOCKET_SIGNING, REGISTER_CONTROL } from '../custody/contexts.ts';
import type { WalletErrorCode } from '../errors.ts';

/** The caller of the signing component: the client of its SVID and the claims of its service token. */
export interface SigningCaller {
  readonly spiffeId: string;
  readonly clientId: string;
  /** `sub` of the service token; empty without one */
  readonly subject: string;
  readonly service: boolean;
  readonly canSignSystem: boolean;
}

/** A request for a system signature, as the audit row records it (specification document 2, section 5, condition a). */
export interface SigningAttempt {
  readonly caller: SigningCaller;
  readonly registerId: string;
  readonly transactionType: string;
  readonly transactionId: string;
  readonly derivationPath: string;
}

/** The codes of the conditions below. */
export type SigningRefusal = Extract<
  WalletErrorCode,
  'DERIVATION_PATH_REFUSED' | 'SIGNING_CLAIM_MISSING' | 'SIGNING_NOT_ALLOWED'
>;

const REGISTER_CLIENT = 'service-register';
/** Client ids of validators. */
export const VALIDATOR_CLIENT = /^validator-[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * The conditions of the specification that are checked before a key is read: one of two paths, the signing claim, and
 * the kind of caller that the path requires. `undefined` allows; otherwise the code of the refusal.
 */
export function judgeSystemSigning(path: string, caller: SigningCaller): SigningRefusal | undefined {
  if (path !== REGISTER_CONTROL && path !== DOCKET_SIGNING) return 'DERIVATION_PATH_REFUSED';
  if (!caller.service || !caller.canSignSystem) return 'SIGNING_CLAIM_MISSING';
  return mayUsePath(path, caller.clientId) ? undefined : 'SIGNING_NOT_ALLOWED';
}

function mayUsePath(path: ContextName, clientId: string): boolean {
  return path === REGISTER_CONTROL ? clientId === REGISTER_CLIENT : VALIDATOR_CLIENT.test(clientId);
}

/**
 * Judges a read of the public key of `platform:register-control`. The register service requests its signatures, and
 * validators accept only a genesis that it signed. `undefined` allows; otherwise the code of the refusal.
 */
export function judgeSystemKeyReading(path: string, caller: SigningCaller): SigningRefusal | undefined {
  if (path !== REGISTER_CONTROL) return 'DERIVATION_PATH_REFUSED';
  if (!caller.service || !caller.canSignSystem) return 'SIGNING_CLAIM_MISSING';
  const isReader = caller.clientId === REGISTER_CLIENT || VALIDATOR_CLIENT.test(caller.clientId);
  return isReader ? undefined : 'SIGNING_NOT_ALLOWED';
}

/** A validator signs for itself only: its identity is the client id of its certificate. */
export function judgeValidatorIdentity(
  validatorId: string,
  caller: SigningCaller,
): SigningRefusal | undefined {
  return validatorId === caller.clientId ? undefined : 'SIGNING_NOT_ALLOWED';
}
