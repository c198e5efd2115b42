import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import { judgeDestination, type ReturnToHosts } from '../../requests/return-to.ts';
import type { Living } from '../../tokens/one-time/one-time.ts';
import type { OAuthStates, StatePayload } from './state.ts';
import {
  authorizationUrl,
  prepareExchange,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamClient,
} from './upstream/upstream.ts';

export interface VisitDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly states: OAuthStates;
  readonly client: UpstreamClient;
  readonly baseUrl: string;
  readonly returnToHosts: ReturnToHosts;
}

/** A visit that has begun: the address to open, and the state that the provider sends back. */
export interface BegunVisit {
  readonly authorizationUrl: string;
  readonly state: string;
}

interface Beginning {
  /** Name of the social provider, or id of the organisation. */
  readonly source: string;
  readonly upstream: Upstream;
  readonly payload: Omit<StatePayload, 'nonce' | 'verifier'>;
  /** Further parameters of the authorization request. */
  readonly extra?: Readonly<Record<string, string>>;
}

/** Begins a visit at a provider. */
export async function beginVisit(
  { states }: Pick<VisitDeps, 'states'>,
  tx: Transactor<TenantDatabase>,
  { source, upstream, payload, extra }: Beginning,
): Promise<BegunVisit> {
  const exchange = prepareExchange(upstream);
  const state = await states.issue(tx, { subject: source, payload: { ...payload, ...exchange } });
  const { redirectUri } = payload;
  return {
    authorizationUrl: await authorizationUrl(upstream, { ...exchange, redirectUri, state }, extra),
    state,
  };
}

export type Visit = Living<StatePayload>;

/** Whether a visit is the one that a request may end. */
type Judge = (visit: Visit) => boolean;

/**
 * Reads the state of a visit without using it.
 * @throws INVALID_STATE, the same for each cause
 */
export async function findVisit({ db, states }: VisitDeps, state: string, judge: Judge): Promise<Visit> {
  const found = await states.find(db.read, state);
  if (typeof found === 'string' || !judge(found)) throw refusal('INVALID_STATE');
  return found;
}

/**
 * Uses the state of a visit, before the code is redeemed: a second request with it does not reach the provider, and a
 * visit that fails is begun anew.
 *
 * @throws INVALID_STATE
 */
export async function takeVisit(deps: VisitDeps, state: string, judge: Judge): Promise<Visit> {
  await findVisit(deps, state, judge);
  const taken = await deps.db.transact((tx) => deps.states.take(tx, state));
  if (typeof taken === 'string') throw refusal('INVALID_STATE');
  return taken;
}

interface Redemption {
  readonly upstream: Upstream;
  readonly visit: Visit;
  readonly state: string;
  /** What the provider sent back: `code`, or `error`, and `iss`. */
  readonly parameters: Readonly<Record<string, string | undefined>>;
  /** The organisation whose audit log tells of a failure. */
  readonly organizationId: string;
  readonly origin: Origin;
}

/**
 * Redeems the code of a visit. Whatever is wrong with the answer, the person learns only that it was not accepted; log and
 * audit log have the reason.
 *
 * @throws PROVIDER_REFUSED
 */
export async function redeemVisit<Identity>(
  deps: VisitDeps,
  { upstream, visit, state, parameters, organizationId, origin }: Redemption,
  identify: (answer: UpstreamAnswer) => Promise<Identity>,
): Promise<Identity> {
  const { redirectUri, nonce, verifier } = visit.payload;
  const sent = Object.entries({ ...parameters, state }).filter((each) => each[1] !== undefined);
  const query = new URLSearchParams(sent as [string, string][]);
  try {
    const answer = await deps.client.redeem(upstream, { redirectUri, state, nonce, verifier }, query);
    return await identify(answer);
  } catch (error) {
    if (isAppError(error)) throw error;
    const reason = reasonOf(error);
    deps.log.warn({ err: error, source: visit.subject }, 'the answer of a provider is not accepted');
    await deps.db.transact((tx) =>
      appendAudit(tx, {
        organizationId,
        occurredAtMs: deps.clock.nowMs(),
        type: 'LoginFailed',
        origin,
        success: false,
        details: { reason: 'provider', provider: visit.subject, fault: reason },
      }),
    );
    throw refusal('PROVIDER_REFUSED');
  }
}

/** The kind of a fault: texts may quote what a foreign party wrote. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : error.name;
}

/**
 * The allowed destination that a client names, as it is stored.
 * @throws RETURN_ADDRESS_REFUSED
 */
export function requireDestination(
  { baseUrl, returnToHosts: hosts }: Pick<VisitDeps, 'baseUrl' | 'returnToHosts'>,
  asked: string,
): string {
  const found = judgeDestination(asked, { baseUrl, hosts });
  if (found === undefined) throw refusal('RETURN_ADDRESS_REFUSED');
  return found.url;
}
