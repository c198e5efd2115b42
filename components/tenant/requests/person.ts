import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';

/** @throws AppError unauthenticated UNAUTHORIZED for a service, which is not a person and has no memberships */
export function requirePerson(caller: Caller): string {
  if (caller.platformUserId !== undefined) return caller.platformUserId;
  throw new AppError(
    'unauthenticated',
    genericCode('unauthenticated'),
    'The token does not belong to a person',
  );
}
