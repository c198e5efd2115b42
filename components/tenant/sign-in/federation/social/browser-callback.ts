import { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import { refusal } from '../../../errors.ts';
import type { Origin } from '../../../requests/origin.ts';
import type { IssuedTokens } from '../../../tokens/sessions/session.ts';
import { toName } from '../upstream/identity.ts';
import { findVisit, takeVisit, type Visit } from '../visit.ts';
import { endSocialSignIn, type ProviderAnswer, type SocialDeps } from './sign-in.ts';

interface BrowserArrival extends ProviderAnswer {
  /** What the state must be bound to, where it is bound. */
  readonly browser: string | undefined;
  readonly user?: string | undefined;
  readonly origin: Origin;
}

/**
 * Where a browser that comes back from a provider is sent: with tokens in the fragment, which reaches no server, to the
 * destination of the sign-in; with the answer of the provider to the page that ends a link or a proof by it.
 *
 * @throws INVALID_STATE, and what a sign-in throws that no page shows
 */
export async function arriveBySocial(deps: SocialDeps, arrival: BrowserArrival): Promise<string> {
  const { browser, user, origin, ...answer } = arrival;
  const judge = ({ payload }: Visit) => payload.browser === undefined || payload.browser === browser;
  const { payload, subject } = await findVisit(deps, answer.state, judge);
  const { intent } = payload;
  if (intent === 'organization') throw refusal('INVALID_STATE');
  if (intent !== 'sign-in') return toPage(deps, { intent, provider: subject, answer });
  const { surface, returnTo = '/app/' } = payload;
  if (answer.error !== undefined || answer.code === undefined) {
    await takeVisit(deps, answer.state, judge);
    return refused(surface, answer.error === 'access_denied' ? 'access_denied' : 'PROVIDER_REFUSED');
  }
  try {
    const end = { answer, judge, returnTo, displayName: nameOfForm(user), origin };
    const outcome = await endSocialSignIn(deps, end);
    if (outcome.kind === 'link-required') {
      return `/app/#${fragment({ outcome: 'LinkRequired', linkPendingToken: outcome.linkPendingToken })}`;
    }
    return withTokens(surface === 'wallet' ? '/wallet/' : returnTo, outcome.tokens);
  } catch (error) {
    // Shown by the page; anything else is a fault of the request, or ours.
    if (isAppError(error) && shown.has(error.code)) return refused(surface, error.code);
    throw error;
  }
}

const shown: ReadonlySet<string> = new Set([
  'PROVIDER_REFUSED',
  'ProviderUnverified',
  'ExistingUnverified',
  'NoExistingAccount',
  'PUBLIC_ORG_DISABLED',
  'REGISTRATION_CLOSED',
  'NOT_A_MEMBER',
]);

function refused(surface: 'app' | 'wallet', code: string): string {
  if (surface === 'app') return `/app/#${fragment({ outcome: 'Error', code })}`;
  const authError = code === 'NoExistingAccount' ? 'no_account' : code;
  return `/wallet/?${new URLSearchParams({ authError })}`;
}

interface PageTurn {
  readonly intent: 'link' | 'proof';
  readonly provider: string;
  readonly answer: ProviderAnswer;
}

/** The page posts the answer with the bearer token of the account that began. */
async function toPage(deps: SocialDeps, { intent, provider, answer }: PageTurn): Promise<string> {
  const { state, code, error, iss } = answer;
  if (error !== undefined || code === undefined) {
    await takeVisit(deps, state, () => true);
    return refused('app', error === 'access_denied' ? 'access_denied' : 'PROVIDER_REFUSED');
  }
  const outcome = intent === 'link' ? 'Link' : 'ReOAuth';
  return `/app/#${fragment({ outcome, provider, code, state, ...(iss !== undefined && { iss }) })}`;
}

const fragment = (members: Readonly<Record<string, string>>) => String(new URLSearchParams(members));

/** The specification hands tokens to pages in the fragment. */
export function withTokens(destination: string, tokens: IssuedTokens): string {
  const { accessToken: token, refreshToken: refresh, expiresIn } = tokens;
  return `${destination}#${fragment({ token, refresh, expires_in: String(expiresIn) })}`;
}

const formUser = z.object({
  name: z.object({ firstName: z.string().optional(), lastName: z.string().optional() }),
});

/** The name that Apple posts beside the code of the first sign-in. */
function nameOfForm(user: string | undefined): string | undefined {
  if (user === undefined) return undefined;
  try {
    const { name } = formUser.parse(JSON.parse(user));
    return toName(name.firstName, name.lastName);
  } catch {
    throw refusal('INVALID_STATE');
  }
}
