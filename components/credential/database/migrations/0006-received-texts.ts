import { type Kysely, sql } from 'kysely';

/**
 * What callers and wallets of others write may have any character of JSON. `jsonb` refuses U+0000, so one such character in
 * a credential would leave its presentation without a verdict; `json` stores the text as it is.
 */
export const receivedTexts = {
  name: '0006-received-texts',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table presentation_requests
      alter column terms type json, alter column verdict type json, alter column claims type json`.execute(
      db,
    );
    await sql`alter table configurations alter column claims type json`.execute(db);
    await sql`alter table offers
      alter column disclosable type json, alter column tx_code_form type json`.execute(db);
  },
};
