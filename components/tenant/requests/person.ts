import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';

/** @throws AppError unauthenticated UNAUTHORIZED for a service: it is nobody, and belongs to no organisation */
export function requirePerson(caller: Caller): string {
  if (caller.platformUserId !== undefined) return caller.platformUserId;
  throw new AppError('unauthenticated', 'UNAUTHORIZED', 'The token is not that of a person');
}
