import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table status_lists (
    id uuid primary key,
    organization_id uuid not null,
    wallet_address text not null,
    trust_anchor text not null check (trust_anchor in ('register', 'x509-tenant', 'x509-lotl')),
    size integer not null,
    allocated integer not null default 0 check (allocated between 0 and size),
    statuses bytea not null check (octet_length(statuses) * 4 = size),
    version integer not null default 0,
    signed_token text,
    signed_version integer,
    signed_at timestamptz
  )`,
  sql`create index status_lists_open on status_lists (wallet_address, trust_anchor)`,
  sql`alter table status_lists alter column statuses set storage external`,
  sql`create table credentials (
    id uuid primary key,
    offer_id uuid not null references offers,
    organization_id uuid not null,
    wallet_address text not null,
    configuration_id text not null references configurations,
    holder_thumbprint text not null,
    status text not null check (status in ('Active', 'Suspended', 'Revoked')),
    list_id uuid references status_lists,
    list_index integer,
    reason text,
    issued_at timestamptz not null,
    expires_at timestamptz,
    changed_at timestamptz,
    unique (list_id, list_index),
    check ((list_id is null) = (list_index is null))
  )`,
  sql`create index credentials_offer on credentials (offer_id)`,
];

export const credentials = {
  name: '0002-credentials',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
