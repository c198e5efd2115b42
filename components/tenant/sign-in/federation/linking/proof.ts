import { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import { refusal } from '../../../errors.ts';
import { listSocialProviders } from '../../../people/means/store.ts';
import type { ProofWay, Proving } from '../../challenge/prove.ts';
import { identifyVisit, redirectUriOf, requireProvider, type SocialDeps } from '../social/sign-in.ts';
import { findLink } from '../store.ts';
import { beginVisit, takeVisit, type Visit } from '../visit.ts';

const proofSchema = z.object({
  provider: z.string().min(1).max(40),
  code: z.string().min(1).max(4096),
  state: z.string().min(1).max(256),
  iss: z.string().max(2048).optional(),
});

/** A provider that tells when the person proved who they are must have seen that in this time. */
const freshMs = 300_000;

/**
 * A visit at a provider that is connected with the account already, which has the person sign in again (OpenID Connect
 * Core 1.0, 3.1.2.1: `max_age`). The page posts what the provider sent back.
 */
export function createReauthentication(deps: SocialDeps): ProofWay {
  return {
    strength: 'strong',
    isEnrolled: ({ socialProviders }) => socialProviders.some((name) => deps.providers.has(name)),
    async begin(tx, { accountId }) {
      const linked = await listSocialProviders(tx, accountId);
      const name = linked.find((each) => deps.providers.has(each));
      if (name === undefined) throw refusal('NoMethodAvailable');
      const { upstream } = requireProvider(deps, name);
      const redirectUri = redirectUriOf(deps, undefined);
      const payload = { intent: 'proof', redirectUri, surface: 'app', accountId } as const;
      const extra = upstream.isOpenId ? { max_age: '0' } : {};
      return { provider: name, ...(await beginVisit(deps, tx, { source: name, upstream, payload, extra })) };
    },
    async judge(proving, proof) {
      const parsed = proofSchema.safeParse(proof);
      if (!parsed.success) return undefined;
      try {
        return (await isProved(deps, proving, parsed.data)) ? { use: async () => true } : undefined;
      } catch (error) {
        // Whatever is wrong with the answer of the provider, the proof is wrong.
        if (isAppError(error, 'invalid')) return undefined;
        throw error;
      }
    },
  };
}

async function isProved(
  deps: SocialDeps,
  { accountId, origin }: Proving,
  { provider: name, ...answer }: z.output<typeof proofSchema>,
): Promise<boolean> {
  const isTheirs = ({ subject, payload }: Visit) =>
    payload.intent === 'proof' && payload.accountId === accountId && subject === name.toLowerCase();
  const visit = await takeVisit(deps, answer.state, isTheirs);
  const provider = requireProvider(deps, visit.subject);
  const identity = await identifyVisit(deps, { provider, visit, answer, origin });
  const link = await findLink(deps.db.read, provider.name, identity.subject);
  const { authTimeMs } = identity;
  const isFresh = authTimeMs === undefined || deps.clock.nowMs() - authTimeMs <= freshMs;
  return link?.accountId === accountId && isFresh;
}
