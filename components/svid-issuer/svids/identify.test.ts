import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TokenReview, tokenReview } from '../kubernetes/cluster-api.ts';
import { identify } from './identify.ts';

const audience = 'spiffe://acme.local/service/svid-issuer';
const rules = {
  audience,
  namespace: 'acme',
  serviceAccounts: new Set(['service-wallet', 'service-register']),
};

interface ReviewFields {
  readonly account?: string;
  readonly namespace?: string;
  readonly pods?: readonly string[];
  readonly more?: Partial<TokenReview>;
}

function review({
  account = 'service-wallet',
  namespace = 'acme',
  pods,
  more = {},
}: ReviewFields): TokenReview {
  return tokenReview.parse({
    authenticated: true,
    audiences: [audience],
    user: {
      username: `system:serviceaccount:${namespace}:${account}`,
      extra: pods === undefined ? {} : { 'authentication.kubernetes.io/pod-name': pods },
    },
    ...more,
  });
}

describe('the identity of a token', () => {
  it.each<[ReviewFields, string]>([
    [{}, 'service-wallet'],
    [{ account: 'service-register', pods: ['service-register-7d9f-x'] }, 'service-register'],
    [{ account: 'validator-main', pods: ['main-0'] }, 'validator-main-0'],
    [{ account: 'validator-main', pods: ['main-99'] }, 'validator-main-99'],
    [{ account: 'validator-main-1', pods: ['main-1-0'] }, 'validator-main-1-0'],
  ])('%j is %s', (given, clientId) => {
    expect(identify(review(given), rules)).toBe(clientId);
  });

  it.each<[string, ReviewFields]>([
    ['token_rejected', { more: { authenticated: false } }],
    ['audience', { more: { audiences: [] } }],
    ['audience', { more: { audiences: ['spiffe://other.local/service/svid-issuer'] } }],
    ['not_a_service_account', { more: { user: { username: 'kubernetes-admin', extra: {} } } }],
    [
      'not_a_service_account',
      { more: { user: { username: 'x:system:serviceaccount:acme:service-wallet', extra: {} } } },
    ],
    ['not_a_service_account', { account: 'service-wallet:x' }],
    ['namespace', { namespace: 'other' }],
    ['service_account', { account: 'service-tenant' }],
    ['service_account', { account: 'svid-issuer' }],
    ['service_account', { account: 'default' }],
    ['service_account', { account: 'validator-' }],
    ['service_account', { account: `validator-${'a'.repeat(41)}`, pods: [`${'a'.repeat(41)}-0`] }],
    ['pod_name_missing', { account: 'validator-main' }],
    ['pod_name_missing', { account: 'validator-main', pods: [] }],
    ['pod_name_missing', { account: 'validator-main', pods: ['main-0', 'main-1'] }],
    ['pod_name', { account: 'validator-main', pods: ['other-0'] }],
    ['pod_name', { account: 'validator-main', pods: ['main'] }],
    ['pod_name', { account: 'validator-main', pods: ['main-'] }],
    ['pod_name', { account: 'validator-main', pods: ['main-00'] }],
    ['pod_name', { account: 'validator-main', pods: ['main-1-0'] }],
    ['pod_name', { account: 'validator-main', pods: ['main-0\n'] }],
    ['pod_name', { account: 'validator-main', pods: ['main-1000'] }],
  ])('refuses for %s: %j', (reason, given) => {
    expect(() => identify(review(given), rules)).toThrow(expect.objectContaining({ details: { reason } }));
  });

  it('never gives two different pods of a namespace the same identity', () => {
    const name = fc.stringMatching(/^[a-z](?:[-a-z0-9]{0,6}[a-z0-9])?$/);
    const member = fc.record({
      set: name,
      pod: fc.oneof(
        name,
        fc.tuple(name, fc.nat(20)).map((parts) => parts.join('-')),
      ),
    });
    fc.assert(
      fc.property(member, member, (one, two) => {
        const ids = [one, two].map(({ set, pod }) => {
          try {
            return identify(review({ account: `validator-${set}`, pods: [pod] }), rules);
          } catch {
            return undefined;
          }
        });
        return ids[0] === undefined || ids[0] !== ids[1] || one.pod === two.pod;
      }),
    );
  });
});
