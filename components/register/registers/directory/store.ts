import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { ValidatorAddress } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';

export interface Announcement {
  readonly validatorId: string;
  readonly publicKey: string;
  readonly algorithm: string;
  readonly endpoint: string;
  readonly version: string;
  /** what its rules cover */
  readonly features: readonly string[];
  readonly announcedAt: Date;
}

function select(db: Reader<RegisterSchema>) {
  return db
    .selectFrom('validator_directory')
    .select([
      'validator_directory.validator_id as validatorId',
      'validator_directory.public_key as publicKey',
      'validator_directory.algorithm as algorithm',
      'endpoint',
      'version',
      'features',
      'announced_at as announcedAt',
    ]);
}

/** Validators that announced themselves since `since`, by id. */
export function announcedSince(db: Reader<RegisterSchema>, since: Date): Promise<Announcement[]> {
  return select(db).where('announced_at', '>=', since).orderBy('validator_directory.validator_id').execute();
}

/** The announcements of the given validators, by id; those without one are left out. */
export async function announcedAmong(
  db: Reader<RegisterSchema>,
  validatorIds: readonly string[],
): Promise<Announcement[]> {
  if (validatorIds.length === 0) return [];
  return select(db)
    .where('validator_directory.validator_id', 'in', validatorIds)
    .orderBy('validator_directory.validator_id')
    .execute();
}

/** The latest announcement of one validator. */
export function findAnnounced(
  db: Reader<RegisterSchema>,
  validatorId: string,
): Promise<Announcement | undefined> {
  return select(db).where('validator_directory.validator_id', '=', validatorId).executeTakeFirst();
}

/** Every validator that has ever announced itself, by id. */
export function allAnnounced(db: Reader<RegisterSchema>): Promise<Announcement[]> {
  return select(db).orderBy('validator_directory.validator_id').execute();
}

/** A register's current members with their addresses: the latest announcement first, members without one last. */
export async function memberAddresses(
  db: Reader<RegisterSchema>,
  registerNo: number,
): Promise<ValidatorAddress[]> {
  const rows = await db
    .selectFrom('register_validators')
    .leftJoin('validator_directory', 'validator_directory.validator_id', 'register_validators.validator_id')
    .select(['register_validators.validator_id as validatorId', 'endpoint'])
    .where('register_no', '=', registerNo)
    .where('until_docket', 'is', null)
    .orderBy('announced_at', (order) => order.desc().nullsLast())
    .execute();
  return rows.map(({ validatorId, endpoint }) => ({ validatorId, endpoint: endpoint ?? '' }));
}

/** Ids of current members that have not announced a feature, by register; a register without such members is absent. */
export async function membersWithout(
  db: Reader<RegisterSchema>,
  registerNos: readonly number[],
  feature: string,
): Promise<ReadonlyMap<number, readonly string[]>> {
  if (registerNos.length === 0) return new Map();
  const rows = await db
    .selectFrom('register_validators')
    .leftJoin('validator_directory', 'validator_directory.validator_id', 'register_validators.validator_id')
    .select(['register_no', 'register_validators.validator_id'])
    .where('register_no', 'in', registerNos)
    .where('until_docket', 'is', null)
    .where(sql<boolean>`(${feature} = any(features)) is not true`)
    .orderBy('register_validators.validator_id')
    .execute();
  const lacking = new Map<number, string[]>();
  for (const { register_no: registerNo, validator_id: validatorId } of rows)
    lacking.set(registerNo, [...(lacking.get(registerNo) ?? []), validatorId]);
  return lacking;
}

/** Upserts unless the validator is known under another key; returns whether it was written. */
export async function announce(tx: Transactor<RegisterSchema>, entry: Announcement): Promise<boolean> {
  const row = {
    public_key: entry.publicKey,
    algorithm: entry.algorithm,
    endpoint: entry.endpoint,
    version: entry.version,
    features: [...entry.features],
    announced_at: entry.announcedAt,
  };
  const written = await tx
    .insertInto('validator_directory')
    .values({ validator_id: entry.validatorId, ...row })
    .onConflict((conflict) =>
      conflict
        .column('validator_id')
        .doUpdateSet(row)
        .where('validator_directory.public_key', '=', entry.publicKey),
    )
    .returning('validator_id')
    .execute();
  return written.length === 1;
}

/** Ids of the registers whose set contains a validator. */
export async function registersOfMember(db: Reader<RegisterSchema>, validatorId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('register_validators')
    .innerJoin('registers', 'registers.register_no', 'register_validators.register_no')
    .select('register_id')
    .distinct()
    .where('validator_id', '=', validatorId)
    .where('until_docket', 'is', null)
    .where('deleted_at', 'is', null)
    .execute();
  return rows.map((row) => row.register_id);
}
