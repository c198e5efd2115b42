import { AppError } from '#core/errors/errors.ts';
import { type ContextName, DOCKET_SIGNING, REGISTER_CONTROL } from '../custody/contexts.ts';

/** Who asks the signing component: the SVID's client and what its service token says. */
export interface SigningCaller {
  readonly spiffeId: string;
  readonly clientId: string;
  /** `sub` of the service token; empty without one */
  readonly subject: string;
  readonly service: boolean;
  readonly canSignSystem: boolean;
}

/** What is asked for; the audit row is made of it (specification, document 2, section 5, condition a). */
export interface SigningAttempt {
  readonly caller: SigningCaller;
  readonly registerId: string;
  readonly transactionType: string;
  readonly transactionId: string;
  readonly derivationPath: string;
}

const REGISTER_CLIENT = 'service-register';
/** Client ids of validators. */
export const VALIDATOR_CLIENT = /^validator-[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * The conditions of the specification before any key is touched: one of two paths, the signing claim, and the one
 * kind of caller that each path knows. `undefined` allows; otherwise the code of the refusal.
 */
export function judgeSystemSigning(path: string, caller: SigningCaller): string | undefined {
  if (path !== REGISTER_CONTROL && path !== DOCKET_SIGNING) return 'DERIVATION_PATH_REFUSED';
  if (!caller.service || !caller.canSignSystem) return 'SIGNING_CLAIM_MISSING';
  return mayUsePath(path, caller.clientId) ? undefined : 'SIGNING_NOT_ALLOWED';
}

function mayUsePath(path: ContextName, clientId: string): boolean {
  return path === REGISTER_CONTROL ? clientId === REGISTER_CLIENT : VALIDATOR_CLIENT.test(clientId);
}

/**
 * Who may read the public key of `platform:register-control`: the register service, which has it sign, and
 * validators, which admit a genesis only under it. `undefined` allows; otherwise the code of the refusal.
 */
export function judgeSystemKeyReading(path: string, caller: SigningCaller): string | undefined {
  if (path !== REGISTER_CONTROL) return 'DERIVATION_PATH_REFUSED';
  if (!caller.service || !caller.canSignSystem) return 'SIGNING_CLAIM_MISSING';
  const known = caller.clientId === REGISTER_CLIENT || VALIDATOR_CLIENT.test(caller.clientId);
  return known ? undefined : 'SIGNING_NOT_ALLOWED';
}

/** A validator signs for itself only: its identity is the client id of its certificate. */
export function judgeValidatorIdentity(validatorId: string, caller: SigningCaller): string | undefined {
  return validatorId === caller.clientId ? undefined : 'SIGNING_NOT_ALLOWED';
}

const MESSAGES: Readonly<Record<string, string>> = {
  DERIVATION_PATH_REFUSED: 'the signing component knows two derivation paths, and this is neither',
  SIGNING_CLAIM_MISSING: 'the caller has no signing claim',
  SIGNING_NOT_ALLOWED: 'the caller may not sign on this path for this identity',
};

export function refusal(code: string): AppError {
  return new AppError('forbidden', code, MESSAGES[code] ?? 'signing refused');
}
