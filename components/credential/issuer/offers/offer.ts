import type { TxCodeForm } from '../../database/schema.ts';
import { PRE_AUTHORIZED_GRANT } from '../../protocol/grants.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import type { TrustAnchor } from '../signing/issuers.ts';

/** Wrong transaction codes that end an offer. */
export const mostTxCodeTries = 5;

/** An offer as it is stored. */
export interface Offer {
  readonly id: string;
  readonly organizationId: string;
  readonly walletAddress: string;
  readonly configurationId: string;
  readonly trustAnchor: TrustAnchor;
  readonly disclosable: readonly string[] | null;
  readonly validitySeconds: number | null;
  readonly txCodeForm: TxCodeForm | null;
  readonly holderThumbprint: string | null;
  /** Where changes of the status are recorded too. */
  readonly registerId: string | null;
  readonly hasStatus: boolean;
  readonly status: OfferStatus;
  readonly reason: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly exchangedAt: Date | null;
  readonly issuedAt: Date | null;
}

export type OfferStatus = 'Pending' | 'Exchanged' | 'Expired';

/** The status at a time: a pending offer expires without a write. */
export function statusAt(offer: Pick<Offer, 'status' | 'expiresAt'>, now: Date): OfferStatus {
  return offer.status === 'Pending' && offer.expiresAt <= now ? 'Expired' : offer.status;
}

/** The credential offer of a wallet (OpenID4VCI 1.0, section 4.1.1), with the grant of the profile. */
export function credentialOffer(
  { issuerUrl, profile }: { readonly issuerUrl: string; readonly profile: Profile },
  { configurationId, txCodeForm }: Pick<Offer, 'configurationId' | 'txCodeForm'>,
  code: string,
) {
  const tx_code = txCodeForm === null ? undefined : txCodeOf(txCodeForm);
  const grants = isHighAssurance(profile)
    ? { authorization_code: { issuer_state: code } }
    : { [PRE_AUTHORIZED_GRANT]: { 'pre-authorized_code': code, ...(tx_code !== undefined && { tx_code }) } };
  return { credential_issuer: issuerUrl, credential_configuration_ids: [configurationId], grants };
}

function txCodeOf({ inputMode, length, description }: TxCodeForm) {
  return { input_mode: inputMode, length, ...(description !== undefined && { description }) };
}
