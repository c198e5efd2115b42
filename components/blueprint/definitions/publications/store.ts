import type { JsonObject } from '#core/encoding/json.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { LedgerPosition, SealedPublication } from '../../clients/ledger.ts';
import type { BlueprintDatabase, PublicationTable } from '../../database/schema.ts';

/** A publication of the index. */
export interface IndexedPublication extends SealedPublication {
  readonly registerId: string;
  /** Published here without a rehearsal that its behaviour passed. */
  readonly overridden: boolean;
}

type Row = PublicationTable & { readonly overridden: unknown };

function publicationOf(row: Row): IndexedPublication {
  return {
    registerId: row.register_id,
    publicationTxId: row.publication_tx_id,
    blueprintId: row.blueprint_id,
    ordinal: row.ordinal,
    execDefHash: row.exec_def_hash,
    structuralHash: row.structural_hash,
    publishedBy: row.published_by,
    sealedAt: row.published_at,
    position: { docket: Number(row.docket_number), index: row.position },
    definition: toValue(scanJson(row.definition)) as JsonObject,
    overridden: row.overridden === true,
  };
}

/** Position of the last publication that was read of a register; undefined before the first. */
export async function findCursor(
  db: Reader<BlueprintDatabase>,
  registerId: string,
): Promise<LedgerPosition | undefined> {
  const row = await db
    .selectFrom('publication_cursors')
    .select(['docket_number', 'position'])
    .where('register_id', '=', registerId)
    .executeTakeFirst();
  return row === undefined ? undefined : { docket: Number(row.docket_number), index: row.position };
}

/** Stores publications and moves the cursor of their register behind them; repeating it changes nothing. */
export async function storePublications(
  tx: Transactor<BlueprintDatabase>,
  registerId: string,
  { publications, next }: { publications: readonly SealedPublication[]; next: LedgerPosition },
): Promise<void> {
  for (const one of publications) {
    await tx
      .insertInto('publications')
      .values({
        register_id: registerId,
        publication_tx_id: one.publicationTxId,
        blueprint_id: one.blueprintId,
        ordinal: one.ordinal,
        exec_def_hash: one.execDefHash,
        structural_hash: one.structuralHash,
        published_by: one.publishedBy,
        published_at: one.sealedAt,
        docket_number: one.position.docket,
        position: one.position.index,
        definition: JSON.stringify(one.definition),
      })
      .onConflict((conflict) => conflict.columns(['register_id', 'publication_tx_id']).doNothing())
      .execute();
  }
  const cursor = { docket_number: next.docket, position: next.index };
  await tx
    .insertInto('publication_cursors')
    .values({ register_id: registerId, ...cursor })
    .onConflict((conflict) =>
      conflict
        .column('register_id')
        .doUpdateSet(cursor)
        .where(({ eb, refTuple, tuple }) =>
          eb(
            refTuple('publication_cursors.docket_number', 'publication_cursors.position'),
            '<',
            tuple(cursor.docket_number, cursor.position),
          ),
        ),
    )
    .execute();
}

/** Which publications are asked for. */
interface PublicationQuery {
  readonly blueprintId: string;
  readonly registerId?: string | undefined;
  readonly publicationTxId?: string | undefined;
  readonly ordinal?: number | undefined;
}

const mostVersions = 1_000;

function select(db: Reader<BlueprintDatabase>, query: PublicationQuery) {
  const { blueprintId, registerId, publicationTxId, ordinal } = query;
  return db
    .selectFrom('publications as p')
    .selectAll('p')
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('publish_overrides as o')
          .select('o.id')
          .whereRef('o.register_id', '=', 'p.register_id')
          .whereRef('o.publication_tx_id', '=', 'p.publication_tx_id'),
      ).as('overridden'),
    )
    .where('p.blueprint_id', '=', blueprintId)
    .$if(registerId !== undefined, (each) => each.where('p.register_id', '=', registerId ?? ''))
    .$if(publicationTxId !== undefined, (each) =>
      each.where('p.publication_tx_id', '=', publicationTxId ?? ''),
    )
    .$if(ordinal !== undefined, (each) => each.where('p.ordinal', '=', ordinal ?? 0));
}

/** Publications of a blueprint, newest first, at most 1,000. */
export async function listPublications(
  db: Reader<BlueprintDatabase>,
  query: PublicationQuery,
): Promise<readonly IndexedPublication[]> {
  const rows = await select(db, query)
    .orderBy('p.published_at', 'desc')
    .orderBy('p.register_id')
    .orderBy('p.ordinal', 'desc')
    .limit(mostVersions)
    .execute();
  return rows.map(publicationOf);
}

/** One publication of a register: a named one, or the latest of the blueprint. */
export async function findPublication(
  db: Reader<BlueprintDatabase>,
  query: PublicationQuery & { readonly registerId: string },
): Promise<IndexedPublication | undefined> {
  const row = await select(db, query).orderBy('p.ordinal', 'desc').limit(1).executeTakeFirst();
  return row === undefined ? undefined : publicationOf(row);
}

/** The latest publication of each blueprint of a register, by blueprint, at most 1,000. */
export async function listLatestPublications(
  db: Reader<BlueprintDatabase>,
  registerId: string,
): Promise<readonly Pick<IndexedPublication, 'publicationTxId' | 'blueprintId' | 'ordinal'>[]> {
  const rows = await db
    .selectFrom('publications')
    .distinctOn('blueprint_id')
    .select(['publication_tx_id', 'blueprint_id', 'ordinal'])
    .where('register_id', '=', registerId)
    .orderBy('blueprint_id')
    .orderBy('ordinal', 'desc')
    .limit(mostVersions)
    .execute();
  return rows.map((row) => ({
    publicationTxId: row.publication_tx_id,
    blueprintId: row.blueprint_id,
    ordinal: row.ordinal,
  }));
}

/** The definition of a publication on a register, as it is sealed. */
export async function findDefinition(
  db: Reader<BlueprintDatabase>,
  registerId: string,
  publicationTxId: string,
): Promise<JsonObject | undefined> {
  const row = await db
    .selectFrom('publications')
    .select('definition')
    .where('register_id', '=', registerId)
    .where('publication_tx_id', '=', publicationTxId)
    .executeTakeFirst();
  return row === undefined ? undefined : (toValue(scanJson(row.definition)) as JsonObject);
}

/** Registers on which a blueprint is known to be published, at most 1,000. */
export async function listRegistersOf(
  db: Reader<BlueprintDatabase>,
  blueprintId: string,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('publications')
    .select('register_id')
    .distinct()
    .where('blueprint_id', '=', blueprintId)
    .orderBy('register_id')
    .limit(mostVersions)
    .execute();
  return rows.map((row) => row.register_id);
}
