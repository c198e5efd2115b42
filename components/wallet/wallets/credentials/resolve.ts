import { parseDcqlQuery } from '#core/credential/requests/dcql.ts';
import type { Caller } from '#core/identity/claims.ts';
import { personOf } from '../../grants/authority.ts';
import { findHolderWallet } from '../records/store.ts';
import type { RequestSource, ResolvedRequest } from './judge.ts';
import { type KeepDeps, openActive } from './keep.ts';
import { isAskedBy, matchQuery } from './match.ts';

/**
 * What a verifier really asks, whether its name can be believed, and which credentials of the caller's holder wallet
 * answer it. Nothing is sent to the verifier.
 * @throws AppError as `CredentialJudge.resolveRequest` does; locked WALLET_LOCKED
 */
export async function resolveForHolder(
  deps: KeepDeps,
  caller: Caller,
  source: RequestSource,
): Promise<{ readonly request: ResolvedRequest; readonly found: ReturnType<typeof matchQuery> }> {
  const person = personOf(caller);
  const request = await deps.judge.resolveRequest(source);
  const query = parseDcqlQuery(request.query);
  const wallet = await findHolderWallet(deps.db.read, person);
  const held =
    wallet === undefined ? [] : await openActive(deps, wallet, (credential) => isAskedBy(query, credential));
  return { request, found: matchQuery(query, held) };
}
