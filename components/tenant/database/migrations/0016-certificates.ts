import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

/**
 * Roots of organisations with their revocation lists, and certificates of their keys. A root is replaced and never
 * deleted, and an organisation has one certificate of a provenance in use.
 */
export const certificates: Migration = {
  name: '0016-certificates',
  async up(db) {
    await sql`
      CREATE TABLE organization_roots (
        id uuid PRIMARY KEY,
        organization_id uuid NOT NULL REFERENCES organizations (id),
        wallet_address text NOT NULL,
        certificate bytea NOT NULL,
        key_thumbprint text NOT NULL,
        not_after timestamptz NOT NULL,
        created_at timestamptz NOT NULL,
        superseded_at timestamptz,
        revision bigint NOT NULL DEFAULT 0,
        crl_number bigint NOT NULL DEFAULT 0,
        crl bytea,
        crl_signed_number bigint,
        crl_revision bigint,
        crl_this_update timestamptz,
        crl_next_update timestamptz,
        CHECK ((crl IS NULL) = (crl_signed_number IS NULL)),
        CHECK ((crl IS NULL) = (crl_revision IS NULL)),
        CHECK ((crl IS NULL) = (crl_this_update IS NULL)),
        CHECK ((crl IS NULL) = (crl_next_update IS NULL))
      )`.execute(db);
    await sql`
      CREATE UNIQUE INDEX organization_roots_one_current ON organization_roots (organization_id)
      WHERE superseded_at IS NULL`.execute(db);
    await sql`
      CREATE TABLE organization_certificates (
        id uuid PRIMARY KEY,
        organization_id uuid NOT NULL REFERENCES organizations (id),
        wallet_address text NOT NULL,
        provenance text NOT NULL CHECK (provenance IN ('Internal', 'Imported')),
        status text NOT NULL
          CHECK (status IN ('Active', 'Superseded', 'Revoked', 'KeyMismatch', 'Expired')),
        chain bytea[] NOT NULL CHECK (cardinality(chain) BETWEEN 1 AND 5),
        anchor bytea,
        root_id uuid REFERENCES organization_roots (id),
        serial_number text NOT NULL,
        not_before timestamptz NOT NULL,
        not_after timestamptz NOT NULL,
        usable_until timestamptz NOT NULL,
        key_source text NOT NULL CHECK (key_source IN ('Primary', 'HaipCoKey')),
        key_thumbprint text NOT NULL,
        created_at timestamptz NOT NULL,
        revoked_at timestamptz,
        revocation_reason text,
        CHECK ((provenance = 'Internal') = (root_id IS NOT NULL)),
        CHECK ((status = 'Revoked') = (revoked_at IS NOT NULL))
      )`.execute(db);
    await sql`
      CREATE UNIQUE INDEX organization_certificates_one_active
      ON organization_certificates (organization_id, provenance) WHERE status = 'Active'`.execute(db);
    await sql`
      CREATE UNIQUE INDEX organization_certificates_serials
      ON organization_certificates (root_id, serial_number) WHERE root_id IS NOT NULL`.execute(db);
    await sql`
      CREATE INDEX organization_certificates_newest
      ON organization_certificates (organization_id, created_at DESC, id DESC)`.execute(db);
  },
};
