/** Assurance of a session: the two values of the claim `acr`. */
export type Strength = 'basic' | 'strong';

/**
 * Times of the last authentications, by class of proof. The use case that verifies a proof stores its time in the
 * refresh family; refresh and switching keep it. The claim `amr` is informative and is never evaluated.
 */
export interface Proofs {
  /**
   * Password, code by mail or text message, first sign-in by a social provider or an organisation's identity provider.
   */
  readonly basicProofAtMs: number | undefined;
  /** Authenticator code, backup code, passkey with user verification, re-authentication at a linked provider. */
  readonly strongProofAtMs: number | undefined;
}

export function strengthOf(proofs: Proofs): Strength {
  return proofs.strongProofAtMs === undefined ? 'basic' : 'strong';
}
