import { type Kysely, sql } from 'kysely';

/** Services may own wallets: each under a name that the service chooses. */
export const serviceWallets = {
  name: '0005-service-wallets',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      ALTER TABLE wallets
        ADD COLUMN owner_service text,
        ADD COLUMN service_name text,
        DROP CONSTRAINT wallets_kind_check,
        ADD CONSTRAINT wallets_kind_check CHECK (kind IN ('User', 'Organization', 'System', 'Service')),
        ADD CONSTRAINT wallets_of_service CHECK ((kind = 'Service') = (owner_service IS NOT NULL)),
        ADD CONSTRAINT wallets_service_name CHECK ((kind = 'Service') = (service_name IS NOT NULL))`.execute(
      db,
    );
    await sql`
      CREATE UNIQUE INDEX wallets_one_of_service_name ON wallets (owner_service, service_name)
      WHERE kind = 'Service'`.execute(db);
  },
};
