import { randomUUIDv7 } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import { refusal } from '../../../errors.ts';
import { lockAccount } from '../../../people/accounts/store.ts';
import { countFirstFactors, ownsStrongFactor } from '../../../people/means/means.ts';
import { findMeans } from '../../../people/means/store.ts';
import type { Origin } from '../../../requests/origin.ts';
import { requirePerson } from '../../../requests/person.ts';
import { type GateDeps, requireRecentProof } from '../../challenge/gate.ts';
import { recordLink } from '../record.ts';
import {
  identifyVisit,
  type ProviderAnswer,
  redirectUriOf,
  requireProvider,
  type SocialDeps,
} from '../social/sign-in.ts';
import { deleteLink, findLink, insertLink } from '../store.ts';
import { type BegunVisit, beginVisit, takeVisit } from '../visit.ts';

export interface OwnLinkDeps extends SocialDeps, GateDeps {}

interface LinkStart {
  readonly caller: Caller;
  readonly challenge: string | undefined;
  readonly provider: string;
}

/**
 * Begins to connect an identity of a provider with the caller's account. A stolen token alone does not: a strong proof is
 * wanted where the account owns a strong factor.
 *
 * @throws UNKNOWN_PROVIDER, insufficient_user_authentication
 */
export async function beginLink(
  deps: OwnLinkDeps,
  { caller, challenge, provider: asked }: LinkStart,
): Promise<BegunVisit> {
  const accountId = requirePerson(caller);
  const { name, upstream } = requireProvider(deps, asked);
  return deps.db.transact(async (tx) => {
    const strength = ownsStrongFactor(await findMeans(tx, accountId)) ? 'strong' : 'basic';
    await requireRecentProof(deps, tx, { caller, challenge, operation: 'LinkSocial', strength });
    const redirectUri = redirectUriOf(deps, undefined);
    const payload = { intent: 'link', redirectUri, surface: 'app', accountId } as const;
    return beginVisit(deps, tx, { source: name, upstream, payload });
  });
}

interface LinkEnd {
  readonly caller: Caller;
  readonly provider: string;
  readonly answer: ProviderAnswer;
  readonly origin: Origin;
}

/**
 * Connects the identity that the provider answers with.
 * @throws UNKNOWN_PROVIDER, INVALID_STATE, SESSION_CHANGED, PROVIDER_REFUSED, IDENTITY_LINKED
 */
export async function endLink(deps: OwnLinkDeps, { caller, provider: asked, answer, origin }: LinkEnd) {
  const accountId = requirePerson(caller);
  const provider = requireProvider(deps, asked);
  const visit = await takeVisit(
    deps,
    answer.state,
    ({ subject, payload }) => payload.intent === 'link' && subject === provider.name,
  );
  if (visit.payload.accountId !== accountId) throw refusal('SESSION_CHANGED');
  const { subject, email, displayName } = await identifyVisit(deps, { provider, visit, answer, origin });
  await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account?.isActive !== true) throw refusal('SESSION_CHANGED');
    const atMs = deps.clock.nowMs();
    const link = { accountId, provider: provider.name, subject, email, displayName, atMs };
    if (await insertLink(tx, { ...link, id: randomUUIDv7() })) {
      const event = { accountId, identityId: caller.subject, origin, provider: provider.name, atMs };
      await recordLink(tx, { ...event, event: 'linked' });
      return;
    }
    const present = await findLink(tx, provider.name, subject);
    if (present?.accountId !== accountId) throw refusal('IDENTITY_LINKED');
  });
  deps.notifyInboxes();
}

interface Removal {
  readonly caller: Caller;
  readonly challenge: string | undefined;
  readonly linkId: string;
  readonly origin: Origin;
}

/** @throws LINK_NOT_FOUND, LAST_AUTH_METHOD, insufficient_user_authentication */
export async function removeLink(
  deps: OwnLinkDeps,
  { caller, challenge, linkId, origin }: Removal,
): Promise<void> {
  const accountId = requirePerson(caller);
  await deps.db.transact(async (tx) => {
    await lockAccount(tx, accountId);
    const means = await findMeans(tx, accountId);
    const strength = ownsStrongFactor(means) ? 'strong' : 'basic';
    await requireRecentProof(deps, tx, { caller, challenge, operation: 'RemoveAuthMethod', strength });
    const provider = await deleteLink(tx, linkId, accountId);
    if (provider === undefined) throw refusal('LINK_NOT_FOUND');
    if (countFirstFactors(means) <= 1) throw refusal('LAST_AUTH_METHOD');
    const atMs = deps.clock.nowMs();
    await recordLink(tx, {
      accountId,
      identityId: caller.subject,
      origin,
      event: 'unlinked',
      provider,
      atMs,
    });
  });
  deps.notifyInboxes();
}
