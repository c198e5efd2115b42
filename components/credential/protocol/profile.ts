/** Dialects of the exchange; one for an installation. */
export const PROFILES = ['openid4vc-1.0', 'haip-1.0'] as const;
export type Profile = (typeof PROFILES)[number];

/**
 * Whether nothing weaker than OpenID4VC High Assurance Interoperability Profile 1.0 is served: authorization codes with
 * pushed requests and PKCE, attested clients, tokens that are bound to keys, encrypted answers to `x509_hash` verifiers.
 */
export function isHighAssurance(profile: Profile): boolean {
  return profile === 'haip-1.0';
}
