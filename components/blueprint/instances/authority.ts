import { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import type { Authenticator } from '#kit/auth/auth.ts';
import type { Delegation, Delegations } from '../clients/delegations.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal } from '../errors.ts';
import type { Viewer } from './accumulated-state.ts';

export interface AuthorityDeps {
  readonly authenticator: Authenticator;
  readonly delegations: Delegations;
  /** The client id of this service: only it may use the delegated tokens that are issued to it. */
  readonly clientId: string;
}

const delegationHeader = 'x-delegation-token';

/** Headers of requests that this service carries out with the authority of their caller. */
export const delegationHeaders = z.object({
  [delegationHeader]: z
    .string()
    .max(8_192)
    .optional()
    .describe('A delegated token of this service for you; your own token is exchanged when absent.'),
});

export function delegationIn(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | undefined {
  const given = headers[delegationHeader];
  return typeof given === 'string' && given !== '' ? given : undefined;
}

/**
 * The delegated token that the caller sends, or one that their own token is exchanged for.
 * @throws AppError forbidden DELEGATION_INVALID, unavailable
 */
export async function delegationOf(
  { authenticator, delegations, clientId }: AuthorityDeps,
  { caller, bearer }: Subject,
  given: string | undefined,
): Promise<Delegation> {
  if (given === undefined) return delegations.exchange(bearer);
  try {
    const delegated = await authenticator.authenticate(given);
    const isOwn = caller.kind === 'user' && delegated.delegation?.userId === caller.subject;
    if (isOwn && delegated.clientId === clientId && delegated.scopes.includes('wallets:sign'))
      return { token: given, expiresAtMs: delegated.expiresAtMs };
  } catch (cause) {
    if (!isAppError(cause, 'unauthenticated')) throw cause;
    throw refusal('DELEGATION_INVALID', { cause });
  }
  throw refusal('DELEGATION_INVALID');
}

/** The view of a caller's wallets. The authority is obtained once, and only when something has to be decrypted. */
export function viewerOf(
  deps: AuthorityDeps,
  subject: Subject,
  { wallets }: Pick<Viewer, 'wallets'>,
  given: string | undefined,
): Viewer {
  let delegated: Promise<string> | undefined;
  const authority = () => {
    delegated ??= delegationOf(deps, subject, given).then(({ token }) => token);
    return delegated;
  };
  return { wallets, authority };
}
