import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { Member, Register, RosterEntry } from '../state/store.ts';
import type { Draft } from './draft.ts';
import type { Begun } from './schemas.ts';

export interface Registration {
  readonly registerId: string;
  readonly organizationId: string | undefined;
  readonly nonceHash: Buffer;
  readonly wrongNonces: number;
  readonly draft: Draft;
  readonly expiresAt: Date;
  /** the answer of finalize, once finalised */
  readonly answer: Begun | undefined;
}

/** Opens a registration unless the organisation has `atMost` open ones; returns whether it was written. */
export async function openRegistration(
  tx: Transactor<RegisterSchema>,
  registration: Omit<Registration, 'wrongNonces' | 'answer'> & { readonly createdAt: Date },
  atMost: number,
): Promise<boolean> {
  const owner = registration.organizationId ?? '';
  await sql`select pg_advisory_xact_lock(hashtext(${`register.registrations.${owner}`}))`.execute(tx);
  const open = await tx
    .selectFrom('registrations')
    .select(sql<number>`count(*)::int`.as('total'))
    .where(sql<boolean>`organization_id is not distinct from ${registration.organizationId ?? null}`)
    .where('answer', 'is', null)
    .where('expires_at', '>', registration.createdAt)
    .executeTakeFirstOrThrow();
  if (open.total >= atMost) return false;
  await tx
    .insertInto('registrations')
    .values({
      register_id: registration.registerId,
      organization_id: registration.organizationId ?? null,
      nonce_hash: registration.nonceHash,
      draft: JSON.stringify(registration.draft),
      created_at: registration.createdAt,
      expires_at: registration.expiresAt,
      answer: null,
    })
    .execute();
  return true;
}

export async function findRegistration(
  db: Reader<RegisterSchema>,
  registerId: string,
): Promise<Registration | undefined> {
  const row = await db
    .selectFrom('registrations')
    .selectAll()
    .where('register_id', '=', registerId)
    .executeTakeFirst();
  return (
    row && {
      registerId: row.register_id,
      organizationId: row.organization_id ?? undefined,
      nonceHash: row.nonce_hash,
      wrongNonces: row.wrong_nonces,
      draft: row.draft as Draft,
      expiresAt: row.expires_at,
      answer: (row.answer as Begun | null) ?? undefined,
    }
  );
}

export async function countWrongNonce(tx: Transactor<RegisterSchema>, registerId: string): Promise<void> {
  await tx
    .updateTable('registrations')
    .set((eb) => ({ wrong_nonces: eb('wrong_nonces', '+', 1) }))
    .where('register_id', '=', registerId)
    .execute();
}

/** Closes a registration with its answer; false when another call closed it first. */
export async function closeRegistration(
  tx: Transactor<RegisterSchema>,
  registerId: string,
  answer: Begun,
): Promise<boolean> {
  const closed = await tx
    .updateTable('registrations')
    .set({ answer: JSON.stringify(answer) })
    .where('register_id', '=', registerId)
    .where('answer', 'is', null)
    .returning('register_id')
    .execute();
  return closed.length === 1;
}

/** Deletes registrations that expired before `before`; finalised ones are stored in their registers. */
export async function pruneRegistrations(tx: Transactor<RegisterSchema>, before: Date): Promise<void> {
  await tx.deleteFrom('registrations').where('expires_at', '<', before).execute();
}

type NewRegister = Omit<
  Register,
  | 'registerNo'
  | 'status'
  | 'updatedAt'
  | 'validatorSetVersion'
  | 'height'
  | 'headHash'
  | 'headTimestamp'
  | 'logFrontier'
  | 'transactionCount'
  | 'sizeBytes'
  | 'segment'
>;

/** Inserts a register in status Checking with its head and control projection. Returns its number. */
export async function insertRegister(
  tx: Transactor<RegisterSchema>,
  register: NewRegister,
  control: { readonly members: readonly Member[]; readonly roster: readonly RosterEntry[] },
): Promise<number> {
  const inserted = await tx
    .insertInto('registers')
    .values({
      register_id: register.registerId,
      network_id: register.networkId,
      title: register.title,
      description: register.description ?? null,
      purpose: register.purpose,
      status: 'Checking',
      dev_mode: register.devMode,
      advertise: register.advertise,
      metadata: JSON.stringify(register.metadata),
      policy: register.policyText,
      policy_version: register.policyVersion,
      organization_id: register.organizationId ?? null,
      genesis_transaction_id: register.genesisTransactionId,
      system_public_key: register.systemKey.publicKey,
      system_algorithm: register.systemKey.algorithm,
      created_at: register.createdAt,
      updated_at: register.createdAt,
    })
    .returning('register_no')
    .executeTakeFirstOrThrow();
  const registerNo = inserted.register_no;
  await tx.insertInto('register_heads').values({ register_no: registerNo }).execute();
  await tx.insertInto('register_projections').values({ register_no: registerNo }).execute();
  await tx
    .insertInto('register_validators')
    .values(
      control.members.map((member) => ({
        register_no: registerNo,
        validator_id: member.validatorId,
        from_docket: 0,
        until_docket: null,
        public_key: member.publicKey,
        algorithm: member.algorithm,
      })),
    )
    .execute();
  await tx
    .insertInto('register_roster')
    .values(
      control.roster.map((entry) => ({
        register_no: registerNo,
        subject: entry.subject,
        role: entry.role,
        public_key: entry.publicKey,
        algorithm: entry.algorithm,
        granted_at: entry.grantedAt,
      })),
    )
    .execute();
  return registerNo;
}
