import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase, TxCodeForm } from '../../database/schema.ts';
import type { Offer, OfferStatus } from './offer.ts';

type DB = CredentialDatabase;
type Row = Selectable<DB['offers']>;

interface NewOffer extends Omit<Offer, 'status' | 'reason' | 'exchangedAt' | 'issuedAt' | 'txCodeForm'> {
  readonly codeHash: Buffer;
  readonly referenceHash: Buffer;
  readonly sealedCode: Buffer;
  readonly sealedClaims: Buffer;
  readonly txCode: { readonly form: TxCodeForm; readonly hash: Buffer } | undefined;
  readonly createdBy: string;
}

/** An offer with what opens it; the row is locked until the transaction ends. */
export interface LockedOffer extends Offer {
  readonly sealedClaims: Buffer | null;
  readonly txCodeHash: Buffer | null;
  readonly txCodeTries: number;
}

export async function insertOffer(tx: Transactor<DB>, offer: NewOffer): Promise<void> {
  await tx
    .insertInto('offers')
    .values({
      id: offer.id,
      code_hash: offer.codeHash,
      reference_hash: offer.referenceHash,
      sealed_code: offer.sealedCode,
      sealed_claims: offer.sealedClaims,
      organization_id: offer.organizationId,
      wallet_address: offer.walletAddress,
      configuration_id: offer.configurationId,
      trust_anchor: offer.trustAnchor,
      disclosable: offer.disclosable === null ? null : JSON.stringify(offer.disclosable),
      validity_seconds: offer.validitySeconds,
      tx_code_hash: offer.txCode?.hash ?? null,
      tx_code_form: offer.txCode === undefined ? null : JSON.stringify(offer.txCode.form),
      holder_thumbprint: offer.holderThumbprint,
      register_id: offer.registerId,
      has_status: offer.hasStatus,
      status: 'Pending',
      reason: null,
      created_by: offer.createdBy,
      created_at: offer.createdAt,
      expires_at: offer.expiresAt,
      exchanged_at: null,
      issued_at: null,
    })
    .execute();
}

export async function findOffer(db: Reader<DB>, id: string): Promise<Offer | undefined> {
  const row = await db.selectFrom('offers').selectAll().where('id', '=', id).executeTakeFirst();
  return row && offerOf(row);
}

/** The offer behind a reference, with its sealed code; undefined for an unknown reference. */
export async function findReferenced(
  db: Reader<DB>,
  referenceHash: Buffer,
): Promise<(Offer & { readonly sealedCode: Buffer | null }) | undefined> {
  const row = await db
    .selectFrom('offers')
    .selectAll()
    .where('reference_hash', '=', referenceHash)
    .executeTakeFirst();
  return row && { ...offerOf(row), sealedCode: row.sealed_code };
}

export async function lockOfferByCode(
  tx: Transactor<DB>,
  codeHash: Buffer,
): Promise<LockedOffer | undefined> {
  const row = await tx
    .selectFrom('offers')
    .selectAll()
    .where('code_hash', '=', codeHash)
    .forUpdate()
    .executeTakeFirst();
  return row && lockedOf(row);
}

export async function lockOffer(tx: Transactor<DB>, id: string): Promise<LockedOffer | undefined> {
  const row = await tx.selectFrom('offers').selectAll().where('id', '=', id).forUpdate().executeTakeFirst();
  return row && lockedOf(row);
}

/** Counts a wrong transaction code; returns how many there were. */
export async function countTxCodeTry(tx: Transactor<DB>, id: string): Promise<number> {
  const { tx_code_tries: tries } = await tx
    .updateTable('offers')
    .set((column) => ({ tx_code_tries: column('tx_code_tries', '+', 1) }))
    .where('id', '=', id)
    .returning('tx_code_tries')
    .executeTakeFirstOrThrow();
  return tries;
}

/** Ends a pending offer; what is sealed in it is erased. */
export async function endOffer(
  tx: Transactor<DB>,
  id: string,
  end: {
    readonly status: Exclude<OfferStatus, 'Pending'>;
    readonly reason: string | null;
    readonly at: Date;
  },
): Promise<void> {
  await tx
    .updateTable('offers')
    .set({
      status: end.status,
      reason: end.reason,
      sealed_code: null,
      sealed_claims: null,
      exchanged_at: end.status === 'Exchanged' ? end.at : null,
    })
    .where('id', '=', id)
    .execute();
}

/** Erases what is sealed in offers that have expired, at most so many; returns their number. */
export async function expireOffers(
  tx: Transactor<DB>,
  { now, most }: { readonly now: Date; readonly most: number },
): Promise<number> {
  const expired = tx
    .selectFrom('offers')
    .select('id')
    .where('status', '=', 'Pending')
    .where('expires_at', '<=', now)
    .limit(most)
    .forUpdate()
    .skipLocked();
  const { numUpdatedRows } = await tx
    .updateTable('offers')
    .set({ status: 'Expired', sealed_code: null, sealed_claims: null })
    .where('id', 'in', expired)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

/** Ids of the credentials that were issued for an offer, oldest first. */
export async function listIssued(db: Reader<DB>, offerId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('credentials')
    .select('id')
    .where('offer_id', '=', offerId)
    .orderBy('issued_at')
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}

function lockedOf(row: Row): LockedOffer {
  return {
    ...offerOf(row),
    sealedClaims: row.sealed_claims,
    txCodeHash: row.tx_code_hash,
    txCodeTries: row.tx_code_tries,
  };
}

export function offerOf(row: Row): Offer {
  return {
    id: row.id,
    organizationId: row.organization_id,
    walletAddress: row.wallet_address,
    configurationId: row.configuration_id,
    trustAnchor: row.trust_anchor,
    disclosable: row.disclosable,
    validitySeconds: row.validity_seconds,
    txCodeForm: row.tx_code_form,
    holderThumbprint: row.holder_thumbprint,
    registerId: row.register_id,
    hasStatus: row.has_status,
    status: row.status,
    reason: row.reason,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    exchangedAt: row.exchanged_at,
    issuedAt: row.issued_at,
  };
}
