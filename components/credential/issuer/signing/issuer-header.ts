import type { Issuer } from './issuers.ts';

/**
 * How a header names the key of its issuer: the chain without the anchor (RFC 7515, section 4.1.6), or a DID URL where
 * the register is the anchor.
 */
export function issuerHeader(
  issuer: Issuer,
  chain: readonly Uint8Array[],
): { x5c: string[] } | { kid: string } {
  if (issuer.trustAnchor === 'register') return { kid: `${didOf(issuer)}#issuer` };
  return { x5c: chain.map((der) => Buffer.from(der).toString('base64')) };
}

/** The claim `iss`: the credential issuer, or the DID of the organisation where the register is the anchor. */
export function issuerName(issuer: Issuer, issuerUrl: string): string {
  return issuer.trustAnchor === 'register' ? didOf(issuer) : issuerUrl;
}

function didOf({ walletAddress }: Issuer): string {
  return `did:platform:org:${walletAddress}`;
}
