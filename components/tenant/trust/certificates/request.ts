import { makeRequest } from '../issuing/make.ts';
import { organizationNameOf, parseName } from '../issuing/names.ts';
import { type OrganizationKey, signWith } from '../keys/organization-keys.ts';
import { getCertifiableKey, type JudgeDeps } from './judge.ts';

interface RequestedCertificate {
  readonly organization: { readonly id: string; readonly name: string };
  readonly walletAddress: string;
  /** The name of the organisation when undefined. */
  readonly subjectDn: string | undefined;
}

/**
 * A certificate signing request (RFC 2986) for the organisation's key, in PEM, for a CA of its choice.
 * @throws INVALID_REQUEST, WALLET_NOT_FOUND, WALLET_LOCKED, CERT_KEY_NOT_ELIGIBLE, WALLETS_UNAVAILABLE
 */
export async function requestCertificate(
  deps: JudgeDeps,
  { organization, walletAddress, subjectDn }: RequestedCertificate,
): Promise<{ readonly csrPem: string; readonly key: OrganizationKey }> {
  const name =
    subjectDn === undefined ? organizationNameOf(organization.name, organization.name) : parseName(subjectDn);
  const owner = { organizationId: organization.id, walletAddress };
  const key = await getCertifiableKey(deps, owner);
  const sign = signWith(deps.keys, owner, { key, use: 'issuer' });
  return { csrPem: await makeRequest({ name, spki: key.spki, sign }), key };
}
