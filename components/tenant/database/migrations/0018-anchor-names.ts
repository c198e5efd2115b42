import { type Kysely, sql } from 'kysely';

/** The index by which anchors are found by the issuer that a certificate names; names may be longer than B-trees take. */
export const anchorNames = {
  name: '0018-anchor-names',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create index trust_list_anchors_subject on trust_list_anchors using hash (subject_dn)`.execute(
      db,
    );
  },
};
