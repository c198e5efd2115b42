import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table unreported_events (
    id uuid primary key default gen_random_uuid(),
    organization_id uuid not null,
    kind text not null check (kind in ('issued', 'statusChanged', 'notTrusted')),
    resource_id text not null,
    detail text not null,
    platform_user_id text,
    occurred_at timestamptz not null
  )`,
  sql`create index unreported_events_oldest on unreported_events (occurred_at)`,
  sql`create index access_tokens_offer on access_tokens (offer_id)`,
  sql`alter table presentation_requests add column organization_id uuid`,
];

export const audit = {
  name: '0005-audit',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
