import type { WalletKeyRevoked } from '#core/events/wallet-events.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { ParticipantKey } from './record.ts';

/** The keys that participants of a register published for the given addresses; those of a revoked key are revoked. */
export async function findKeys(
  db: Reader<RegisterSchema>,
  registerNo: number,
  addresses: readonly string[],
): Promise<ParticipantKey[]> {
  const rows = await db
    .selectFrom('participant_keys')
    .leftJoin('revoked_keys', 'revoked_keys.address', 'participant_keys.address')
    .select([
      'participant_keys.address as walletAddress',
      'participant_id as participantId',
      'public_key as publicKey',
      'algorithm',
      'status',
      'encryption_algorithm',
      'encryption_key',
      'revoked_at',
    ])
    .where('register_no', '=', registerNo)
    .where('participant_keys.address', 'in', addresses)
    .execute();
  return rows.map(
    ({ encryption_algorithm: algorithm, encryption_key: publicKey, revoked_at, status, ...key }) => ({
      ...key,
      status: revoked_at === null ? status : 'Revoked',
      encryptionKey: algorithm === null || publicKey === null ? undefined : { algorithm, publicKey },
    }),
  );
}

/** Stores for good that keys are revoked. A repeated revocation keeps the first time. */
export async function storeRevocations(
  tx: Transactor<RegisterSchema>,
  revocations: readonly WalletKeyRevoked[],
): Promise<void> {
  if (revocations.length === 0) return;
  await tx
    .insertInto('revoked_keys')
    .values(
      revocations.map(({ walletAddress, revokedAt }) => ({
        address: walletAddress,
        revoked_at: new Date(revokedAt),
      })),
    )
    .onConflict((conflict) => conflict.column('address').doNothing())
    .execute();
}
