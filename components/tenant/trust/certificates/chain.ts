import { type AppError, isAppError } from '#core/errors/errors.ts';
import { refusal } from '../../errors.ts';
import { findOrganization } from '../../organizations/store.ts';
import type { KeyOwner } from '../keys/organization-keys.ts';
import { type CertificateWish, findUsable, type JudgeDeps } from './judge.ts';

/** The refusal of a chain that cannot be used. */
export type ChainRefusal = 'CERT_NOT_ENROLLED' | 'CERT_EXTERNAL_ANCHOR_UNAVAILABLE' | 'CERTIFICATE_NOT_FOUND';

/**
 * The certificates that signatures of an organisation's key are verified with: DER, the leaf first, without the anchor.
 * The certificate is in use, or retired where that may be, its key is the present one of the wallet, and the organisation
 * is active.
 * @throws the code given, WALLETS_UNAVAILABLE
 */
export async function getIssuerChain(
  deps: JudgeDeps,
  owner: KeyOwner,
  { code, ...wish }: CertificateWish & { readonly code: ChainRefusal },
): Promise<readonly Buffer[]> {
  const organization = await findOrganization(deps.db.read, owner.organizationId);
  if (organization?.status !== 'Active') throw refusal(code);
  const certificate = await findUsable(deps, owner, wish).catch((error: unknown) => {
    throw isDecision(error) ? refusal(code, { cause: error }) : error;
  });
  // The path names the wallet, and a certificate of an earlier one is none of its.
  if (certificate?.walletAddress !== owner.walletAddress) throw refusal(code);
  return certificate.chain;
}

/** A refusal of the key, such as a locked wallet; an outage decides nothing. */
function isDecision(error: unknown): error is AppError {
  return isAppError(error) && !isAppError(error, 'unavailable') && !isAppError(error, 'internal');
}
