/** Assurance of a session: the two values of the claim `acr`. */
export type Strength = 'basic' | 'strong';

/**
 * When this server last saw the person prove who they are, by class of proof. Stamped on the refresh family by the act
 * that judged the proof and carried over refresh and switching; nothing is concluded from `amr`, which names means only.
 */
export interface Proofs {
  /** Password, code by mail or text message, first sign-in by a social provider or an organisation's identity provider. */
  readonly basicProofAtMs: number | undefined;
  /** Authenticator code, backup code, passkey with user verification, re-authentication at a linked provider. */
  readonly strongProofAtMs: number | undefined;
}

export function strengthOf(proofs: Proofs): Strength {
  return proofs.strongProofAtMs === undefined ? 'basic' : 'strong';
}
