import type { Reader } from '#kit/db/db.ts';
import { countBlueprints, findVersion } from '../../blueprints/publications/store.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { findRegister, type SeenRegister } from '../../registers/state/store.ts';
import type { notReadyReasons, systemRegisterStatuses } from './schemas.ts';
import { seedDefinitions } from './seeds.ts';

/** Status values of the record. */
type SystemRegisterStatus = (typeof systemRegisterStatuses)[number];

type NotReadyReason = (typeof notReadyReasons)[number];

/** State of the system register, as every replica reads it. */
export interface SystemRegisterState {
  readonly register: SeenRegister | undefined;
  readonly status: SystemRegisterStatus;
  /** why it is not ready */
  readonly reason: NotReadyReason | undefined;
  readonly blueprintCount: number;
}

/** Ids of the seeds without a published version. */
export async function missingSeeds(db: Reader<RegisterSchema>, registerNo: number): Promise<string[]> {
  const found = await Promise.all(
    seedDefinitions.map(({ id }) => findVersion(db, { registerNo, blueprintId: id }, 'latest')),
  );
  return seedDefinitions.flatMap(({ id }, index) => (found[index] === undefined ? [id] : []));
}

async function reasonOf(
  db: Reader<RegisterSchema>,
  { status, height, registerNo }: SeenRegister,
): Promise<NotReadyReason | undefined> {
  if (height === 0) return 'GenesisPending';
  if (status !== 'Online') return 'RegisterNotOnline';
  return (await missingSeeds(db, registerNo)).length > 0 ? 'SeedsPending' : undefined;
}

export async function loadSystemRegister(
  db: Reader<RegisterSchema>,
  registerId: string,
): Promise<SystemRegisterState> {
  const register = await findRegister(db, registerId);
  if (register === undefined)
    return { register, status: 'initializing', reason: 'NotCreated', blueprintCount: 0 };
  const reason = await reasonOf(db, register);
  const blueprintCount = await countBlueprints(db, register.registerNo);
  if (reason === undefined) return { register, status: 'ready', reason, blueprintCount };
  const status = reason === 'RegisterNotOnline' ? 'degraded' : 'initializing';
  return { register, status, reason, blueprintCount };
}
