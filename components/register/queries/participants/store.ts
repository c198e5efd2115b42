import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { ParticipantKey } from './record.ts';

/** The keys that participants of a register published for the given addresses. */
export async function findKeys(
  db: Reader<RegisterSchema>,
  registerNo: number,
  addresses: readonly string[],
): Promise<ParticipantKey[]> {
  const rows = await db
    .selectFrom('participant_keys')
    .select([
      'address as walletAddress',
      'participant_id as participantId',
      'public_key as publicKey',
      'algorithm',
      'status',
      'encryption_algorithm',
      'encryption_key',
    ])
    .where('register_no', '=', registerNo)
    .where('address', 'in', addresses)
    .execute();
  return rows.map(({ encryption_algorithm: algorithm, encryption_key: publicKey, ...key }) => ({
    ...key,
    encryptionKey: algorithm === null || publicKey === null ? undefined : { algorithm, publicKey },
  }));
}
