import type { Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import type { Offer } from '../offers/offer.ts';

type DB = CredentialDatabase;

/** A credential that is about to be delivered. The credential itself is not stored. */
export interface NewCredential {
  readonly id: string;
  readonly holderThumbprint: string;
  readonly place: { readonly listId: string; readonly index: number } | undefined;
  readonly issuedAt: Date;
  readonly expiresAt: Date | null;
}

/**
 * Writes credentials of an offer, and counts their places in their list. Fails with a unique violation when a place of a
 * status list is taken.
 */
export async function insertCredentials(
  tx: Transactor<DB>,
  offer: Offer,
  credentials: readonly NewCredential[],
): Promise<void> {
  const [first] = credentials;
  const places = credentials.length;
  await tx
    .with('counted', (from) =>
      from
        .updateTable('status_lists')
        .set((column) => ({ allocated: column('allocated', '+', places) }))
        .where('id', '=', first?.place?.listId ?? null),
    )
    .insertInto('credentials')
    .values(
      credentials.map((credential) => ({
        id: credential.id,
        offer_id: offer.id,
        organization_id: offer.organizationId,
        wallet_address: offer.walletAddress,
        configuration_id: offer.configurationId,
        holder_thumbprint: credential.holderThumbprint,
        status: 'Active' as const,
        list_id: credential.place?.listId ?? null,
        list_index: credential.place?.index ?? null,
        reason: null,
        issued_at: credential.issuedAt,
        expires_at: credential.expiresAt,
        changed_at: null,
      })),
    )
    .execute();
}

/**
 * Marks an offer as delivered; the time of the first delivery stays. The offer is locked until the transaction ends.
 * @returns false when a credential of the offer is suspended or revoked: there are no further copies of it
 */
export async function markIssued(tx: Transactor<DB>, offerId: string, at: Date): Promise<boolean> {
  await tx
    .updateTable('offers')
    .set(({ fn, val }) => ({ issued_at: fn.coalesce('issued_at', val(at)) }))
    .where('id', '=', offerId)
    .execute();
  const withdrawn = await tx
    .selectFrom('credentials')
    .select('id')
    .where('offer_id', '=', offerId)
    .where('status', '<>', 'Active')
    .executeTakeFirst();
  return withdrawn === undefined;
}
