import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import { failure } from '../../errors.ts';
import { canSee, type Visibility } from './visibility.ts';

export const registerParams = z.object({ registerId: z.string() });

interface RegisterRequest {
  readonly params: { readonly registerId: string };
}

/** `resource` of a route: the id of the register in the path. @throws AppError not_found REGISTER_NOT_FOUND for other text */
export async function namedRegister({ params }: RegisterRequest): Promise<string> {
  const registerId = findRegisterId(params.registerId);
  if (registerId === undefined) throw failure('REGISTER_NOT_FOUND');
  return registerId;
}

/** `resource` of a route: the id of the register in the path, if the caller may see it. */
export function visibleRegister(
  deps: Visibility,
): (request: RegisterRequest & { readonly caller: Caller }) => Promise<string> {
  return ({ caller, params }) => getVisibleRegister(deps, caller, params.registerId);
}

/** The id of a register that the caller may see. @throws AppError not_found REGISTER_NOT_FOUND */
export async function getVisibleRegister(deps: Visibility, caller: Caller, text: string): Promise<string> {
  const registerId = findRegisterId(text);
  if (registerId === undefined || !(await canSee(deps, caller, registerId))) throw registerNotFound();
  return registerId;
}

/** @returns AppError not_found REGISTER_NOT_FOUND */
export function registerNotFound() {
  return failure('REGISTER_NOT_FOUND', { message: 'The register does not exist' });
}
