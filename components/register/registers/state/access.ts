import type { Caller } from '#core/identity/claims.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { findRegister, type Scope, type SeenRegister } from './store.ts';

/** The caller, with the token for calls to the wallet service on its behalf. */
export interface Subject {
  readonly caller: Caller;
  readonly token: string;
}

/** Services see every register; people see those of their organisation and the system registers. */
export function scopeOf(caller: Caller): Scope {
  return { all: caller.kind === 'service', organizationId: caller.organizationId };
}

/** The register of a path, without an access check. */
export async function getRegister(
  db: Reader<RegisterSchema>,
  registerId: string,
  organizationId?: string,
): Promise<SeenRegister> {
  const id = findRegisterId(registerId);
  const register = id === undefined ? undefined : await findRegister(db, id, organizationId);
  if (register === undefined) throw refusal('REGISTER_NOT_FOUND');
  return register;
}

/** The register of a path if the caller may read it; otherwise it is not found. */
export async function getVisibleRegister(
  db: Reader<RegisterSchema>,
  caller: Caller,
  registerId: string,
): Promise<SeenRegister> {
  const register = await getRegister(db, registerId, caller.organizationId);
  const visible =
    caller.kind === 'service' || register.subscribed || register.advertise || register.purpose === 'System';
  if (!visible) throw refusal('REGISTER_NOT_FOUND');
  return register;
}

/** The register of a path if the caller may submit to it and it accepts submissions. */
export async function getWritableRegister(
  db: Reader<RegisterSchema>,
  caller: Caller,
  registerId: string,
): Promise<SeenRegister> {
  const register = await getRegister(db, registerId, caller.organizationId);
  if (caller.kind !== 'service' && !register.subscribed) throw refusal('SUBSCRIPTION_REQUIRED');
  if (register.status === 'Halted') throw refusal('REGISTER_HALTED');
  if (register.status !== 'Online') throw refusal('REGISTER_NOT_READY', { retryAfterSeconds: 1 });
  return register;
}

/** What a route about one register knows of its request. */
interface RegisterRequest {
  readonly caller: Caller;
  readonly params: { readonly registerId: string };
}

type FindRegister = (request: RegisterRequest) => Promise<SeenRegister>;

/** `resource` of a route: the register of the path, without an access check. */
export function anyRegister(db: () => Reader<RegisterSchema>): FindRegister {
  return ({ params }) => getRegister(db(), params.registerId);
}

/** `resource` of a route: the register of the path if the caller may read it. */
export function visibleRegister(db: () => Reader<RegisterSchema>): FindRegister {
  return ({ caller, params }) => getVisibleRegister(db(), caller, params.registerId);
}

/** `resource` of a route: the register of the path if the caller may submit to it and it accepts submissions. */
export function writableRegister(db: () => Reader<RegisterSchema>): FindRegister {
  return ({ caller, params }) => getWritableRegister(db(), caller, params.registerId);
}
