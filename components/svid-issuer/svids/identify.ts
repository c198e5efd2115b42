import { refusal } from '../errors.ts';
import type { TokenReview } from '../kubernetes/cluster-api.ts';

/** The rules that map pods to identities. */
export interface IdentityRules {
  readonly audience: string;
  readonly namespace: string;
  /** ServiceAccounts of services; each is a client id. */
  readonly serviceAccounts: ReadonlySet<string>;
}

const USERNAME = /^system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})$/;
const POD_NAME = 'authentication.kubernetes.io/pod-name';
const VALIDATOR_ACCOUNT = /^validator-([a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)$/;
const ORDINAL = /^(?:0|[1-9]\d{0,2})$/;

/**
 * The client id of the pod that a token belongs to. A service is identified by its ServiceAccount. A validator is
 * identified by its pod, which must be a member of the set of its ServiceAccount. Every other token is refused.
 *
 * Errors: unauthenticated/IDENTITY_TOKEN_REFUSED, forbidden/IDENTITY_FORBIDDEN.
 */
export function identify(review: TokenReview, rules: IdentityRules): string {
  if (!review.authenticated) throw refusal('token_rejected', { cause: review.error });
  if (!review.audiences.includes(rules.audience)) throw refusal('audience');
  const [, namespace, account] = USERNAME.exec(review.user.username) ?? [];
  if (namespace === undefined || account === undefined) throw refusal('not_a_service_account');
  if (namespace !== rules.namespace) throw refusal('namespace');
  if (rules.serviceAccounts.has(account)) return account;
  const set = VALIDATOR_ACCOUNT.exec(account)?.[1];
  if (set === undefined) throw refusal('service_account');
  return `validator-${memberOf(set, review.user.extra)}`;
}

function memberOf(set: string, extra: TokenReview['user']['extra']): string {
  const names = Object.hasOwn(extra, POD_NAME) ? (extra[POD_NAME] ?? []) : [];
  const [pod, ...others] = names;
  if (pod === undefined || others.length > 0) throw refusal('pod_name_missing');
  if (!pod.startsWith(`${set}-`) || !ORDINAL.test(pod.slice(set.length + 1))) throw refusal('pod_name');
  return pod;
}
