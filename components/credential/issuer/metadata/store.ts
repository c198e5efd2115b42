import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import type { Configuration } from './configuration.ts';
import { slugOf } from './configuration.ts';

type DB = CredentialDatabase;

const mostListed = 1_000;

/** What wallets can be offered at present, newest last; at most 1,000. */
export async function listConfigurations(db: Reader<DB>): Promise<Configuration[]> {
  const rows = await db
    .selectFrom('configurations')
    .selectAll()
    .orderBy('created_at')
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
  { format, credentialType }: Pick<Configuration, 'format' | 'credentialType'>,
): Promise<Configuration | undefined> {
  const row = await db
    .selectFrom('configurations')
    .selectAll()
    .where('format', '=', format)
    .where('credential_type', '=', credentialType)
    .executeTakeFirst();
  return row && configurationOf(row);
}

/**
 * The id of a type in a format. A new one is the slug of the type, with a number where another type has the same one.
 * Name and claims become those of the newest offer.
 */
export async function ensureConfiguration(
  tx: Transactor<DB>,
  configuration: Omit<Configuration, 'id'> & { readonly createdAt: Date },
): Promise<string> {
  const { format, credentialType, displayName, createdAt } = configuration;
  const claims = JSON.stringify(configuration.claims);
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? slugOf(credentialType) : `${slugOf(credentialType)}-${number}`;
    const known = await findConfigurationOfType(tx, configuration);
    if (known !== undefined) {
      const isSame = known.displayName === displayName && JSON.stringify(known.claims) === claims;
      if (!isSame) await describeConfiguration(tx, known.id, { displayName, claims });
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
        created_at: createdAt,
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
  { displayName, claims }: { readonly displayName: string; readonly claims: string },
): Promise<void> {
  await tx
    .updateTable('configurations')
    .set({ display_name: displayName, claims })
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
