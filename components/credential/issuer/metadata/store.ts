import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import type { Configuration } from './configuration.ts';
import { slugOf } from './configuration.ts';

type DB = CredentialDatabase;

const mostListed = 1_000;

/**
 * How far the stored time may be behind the newest offer, so that not every offer writes it. Offers end within a day, so
 * the types of open offers were stored within the last 25 hours.
 */
const offeredGraceMs = 3_600_000;

/** The types that were offered last, at most 1,000; the newest first. */
export async function listConfigurations(db: Reader<DB>): Promise<Configuration[]> {
  const rows = await db
    .selectFrom('configurations')
    .selectAll()
    .orderBy('offered_at', 'desc')
    .orderBy('id')
    .limit(mostListed)
    .execute();
  return rows.map(configurationOf);
}

export async function findConfiguration(db: Reader<DB>, id: string): Promise<Configuration | undefined> {
  const row = await db.selectFrom('configurations').selectAll().where('id', '=', id).executeTakeFirst();
  return row && configurationOf(row);
}

export async function findConfigurationOfType(
  db: Reader<DB>,
  type: ConfiguredType,
): Promise<Configuration | undefined> {
  const row = await findRow(db, type);
  return row && configurationOf(row);
}

type ConfiguredType = Pick<Configuration, 'format' | 'credentialType'>;

function findRow(db: Reader<DB>, { format, credentialType }: ConfiguredType) {
  return db
    .selectFrom('configurations')
    .selectAll()
    .where('format', '=', format)
    .where('credential_type', '=', credentialType)
    .executeTakeFirst();
}

/**
 * The id of a type in a format. A new one is the slug of the type, with a number where another type has the same one.
 * Name and claims become those of the newest offer.
 */
export async function ensureConfiguration(
  tx: Transactor<DB>,
  configuration: Omit<Configuration, 'id'> & { readonly offeredAt: Date },
): Promise<string> {
  const { format, credentialType, displayName, offeredAt } = configuration;
  const claims = JSON.stringify(configuration.claims);
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? slugOf(credentialType) : `${slugOf(credentialType)}-${number}`;
    const known = await findRow(tx, configuration);
    if (known !== undefined) {
      const isSame =
        known.display_name === displayName &&
        JSON.stringify(known.claims) === claims &&
        offeredAt.getTime() - known.offered_at.getTime() < offeredGraceMs;
      if (!isSame) await describeConfiguration(tx, known.id, { displayName, claims, offeredAt });
      return known.id;
    }
    const made = await tx
      .insertInto('configurations')
      .values({
        id,
        format,
        credential_type: credentialType,
        display_name: displayName,
        claims,
        created_at: offeredAt,
        offered_at: offeredAt,
      })
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst();
    if (made !== undefined) return made.id;
  }
}

async function describeConfiguration(
  tx: Transactor<DB>,
  id: string,
  {
    displayName,
    claims,
    offeredAt,
  }: { readonly displayName: string; readonly claims: string; readonly offeredAt: Date },
): Promise<void> {
  await tx
    .updateTable('configurations')
    .set({ display_name: displayName, claims, offered_at: offeredAt })
    .where('id', '=', id)
    .execute();
}

function configurationOf(row: {
  id: string;
  format: 'dc+sd-jwt' | 'mso_mdoc';
  credential_type: string;
  display_name: string;
  claims: readonly string[];
}): Configuration {
  return {
    id: row.id,
    format: row.format,
    credentialType: row.credential_type,
    displayName: row.display_name,
    claims: row.claims,
  };
}
