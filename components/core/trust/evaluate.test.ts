import { expect, it } from 'vitest';
import { findSpkiKey, type SignatureKey } from '../crypto/signature-key.ts';
import {
  DEFAULT_TRUST_POLICY,
  decideTrust,
  type RevocationVerdict,
  type TrustFacts,
  type TrustPolicy,
  type TrustRules,
  type TrustSource,
} from './evaluate.ts';
import { basicConstraints, chain, chainTimeMs, dayMs, ecKey, extension, keyUsage } from './testing/chains.ts';
import { sequence } from './testing/der-writer.ts';

const keys = [ecKey('P-256'), ecKey('P-256'), ecKey('P-256')];
const list = chain('listed', keys);
const tenant = chain('tenant', keys);
const did = 'did:example:issuer';

function keyAt(index: number): SignatureKey {
  const key = findSpkiKey(keys[index]?.spki ?? Buffer.of());
  if (key === undefined) throw new Error('no key');
  return key;
}

const rules: TrustRules = { revocationCheck: 'FailClosed', isStrictAboutFreshness: false, atMs: chainTimeMs };
const snapshot = {
  sequenceNumber: 7,
  anchors: [list.anchor],
  issuedAtMs: chainTimeMs - dayMs,
  nextUpdateMs: chainTimeMs + dayMs,
};
const byCertificate: TrustFacts = {
  origin: { kind: 'x5c', path: list.path },
  resolvedDid: undefined,
  tenantAnchors: [tenant.anchor],
  trustLists: new Map([['eu', snapshot]]),
  revocation: new Map(),
};
const byDid: TrustFacts = {
  ...byCertificate,
  origin: { kind: 'did', did, key: keyAt(0) },
  resolvedDid: { identifiers: [did, 'https://issuer.example'], assertionKeys: [keyAt(1), keyAt(0)] },
};
const good = (path: typeof list.path, verdict: RevocationVerdict = 'Good') =>
  new Map(path.map(({ thumbprint }) => [thumbprint, verdict]));
const byTenant: TrustFacts = {
  ...byCertificate,
  origin: { kind: 'x5c', path: tenant.path },
  revocation: good(tenant.path),
};

const only = (...sources: TrustPolicy['sources']): TrustPolicy => ({ sources });
const euList = { kind: 'trustlist', trustListId: 'eu' } as const;
const tenantRoot = { kind: 'x509-tenant' } as const;
const allowlist: TrustSource = { kind: 'did-allowlist', allowedIssuers: [did] };

/** The reason, or the level when the issuer is trusted. */
function outcome(
  policy: TrustPolicy,
  facts: TrustFacts,
  change: Partial<TrustRules> = {},
): string | undefined {
  const { isTrusted, reason, assuranceLevel } = decideTrust(policy, facts, { ...rules, ...change });
  return isTrusted ? assuranceLevel : reason;
}

it('a trust list vouches, with evidence', () => {
  expect(decideTrust(only({ ...euList, confersAssurance: 'High' }), byCertificate, rules)).toEqual({
    isTrusted: true,
    reason: undefined,
    assuranceLevel: 'High',
    evidence: [
      {
        kind: 'trustlist',
        vouched: true,
        anchorThumbprint: list.anchor.thumbprint,
        trustListId: 'eu#7',
        freshness: 'Fresh',
        evaluatedAtMs: chainTimeMs,
      },
    ],
  });
});

it('reasons of certificates', () => {
  const expired = chain('listed', keys, { 0: { notAfterMs: chainTimeMs - dayMs } });
  const [leaf] = list.path;
  if (leaf === undefined) throw new Error('no leaf');
  const facts = (path: typeof list.path): TrustFacts => ({ ...byCertificate, origin: { kind: 'x5c', path } });
  expect(outcome(only(euList), facts(tenant.path))).toBe('TRUST_ISSUER_NOT_LISTED');
  expect(outcome(only(tenantRoot), facts(list.path))).toBe('TRUST_CHAIN_INVALID');
  expect(outcome(only(euList), facts([...list.path, list.anchor]))).toBe('TRUST_CHAIN_INVALID');
  expect(outcome(only(euList), facts([]))).toBe('TRUST_CHAIN_INVALID');
  expect(outcome(only(euList), facts(expired.path))).toBe('TRUST_CERT_EXPIRED');
  expect(outcome(only(euList), byDid)).toBe('TRUST_CHAIN_INVALID');
  expect(outcome(only({ kind: 'trustlist', trustListId: 'other' }), byCertificate)).toBe(
    'TRUSTLIST_UNAVAILABLE',
  );
  expect(outcome(only({ kind: 'trustlist' }), byCertificate)).toBe('TRUSTLIST_UNAVAILABLE');
  const purpose = { purpose: '1.0.18013.5.1.2', whenAbsent: 'refuse' } as const;
  expect(outcome(only(euList), byCertificate, { purpose })).toBe('TRUST_CHAIN_INVALID');
});

it('revocation', () => {
  expect(outcome(only(tenantRoot), byTenant)).toBe('Low');
  const revoked: TrustFacts = { ...byTenant, revocation: good(tenant.path.slice(0, 1), 'Revoked') };
  expect(outcome(only(tenantRoot), revoked)).toBe('TRUST_CERT_REVOKED');
  expect(outcome(only(tenantRoot), revoked, { revocationCheck: 'FailOpen' })).toBe('TRUST_CERT_REVOKED');
  // a tenant always has a list: to say nothing is not to say that all is good
  const unknown: TrustFacts = { ...byTenant, revocation: new Map() };
  expect(outcome(only(tenantRoot), unknown)).toBe('TRUST_CRL_UNAVAILABLE');
  const open = decideTrust(only(tenantRoot), unknown, { ...rules, revocationCheck: 'FailOpen' });
  expect([open.isTrusted, open.evidence[0]?.reason]).toEqual([true, 'TRUST_CRL_UNAVAILABLE']);
  // the certificates of a trust list have one only when they name it
  const named = chain('listed', keys, {
    0: { extensions: [basicConstraints(false), keyUsage(0), extension('2.5.29.31', sequence())] },
  });
  const withList: TrustFacts = { ...byCertificate, origin: { kind: 'x5c', path: named.path } };
  expect(outcome(only(euList), byCertificate)).toBe('Low');
  expect(outcome(only(euList), withList)).toBe('TRUST_CRL_UNAVAILABLE');
  expect(outcome(only(euList), { ...withList, revocation: good(named.path) })).toBe('Low');
  expect(outcome(only(euList), { ...withList, revocation: good(named.path, 'Unavailable') })).toBe(
    'TRUST_CRL_UNAVAILABLE',
  );
});

it('freshness of a trust list', () => {
  const aged = (
    change: Partial<typeof snapshot> | { nextUpdateMs: undefined; issuedAtMs: number },
  ): TrustFacts => ({
    ...byCertificate,
    trustLists: new Map([['eu', { ...snapshot, ...change }]]),
  });
  const stale = aged({ nextUpdateMs: chainTimeMs - 1 });
  const { isTrusted, evidence } = decideTrust(only(euList), stale, rules);
  expect([isTrusted, evidence[0]?.freshness]).toEqual([true, 'Stale']);
  expect(outcome(only(euList), stale, { isStrictAboutFreshness: true })).toBe('TRUSTLIST_STALE');
  const strict = { isStrictAboutFreshness: true };
  const without = (days: number) => aged({ nextUpdateMs: undefined, issuedAtMs: chainTimeMs - days * dayMs });
  expect(outcome(only(euList), without(90), strict)).toBe('Low');
  expect(outcome(only(euList), without(91), strict)).toBe('TRUSTLIST_STALE');
});

it('DIDs vouch for their own keys alone', () => {
  expect(outcome(DEFAULT_TRUST_POLICY, byDid)).toBe('Low');
  expect(outcome(only(allowlist), byDid)).toBe('Low');
  const resolved = byDid.resolvedDid;
  if (resolved === undefined) throw new Error('no document');
  const unlisted = 'TRUST_ISSUER_NOT_LISTED';
  for (const policy of [DEFAULT_TRUST_POLICY, only(allowlist)]) {
    const facts = (change: Partial<TrustFacts>) => outcome(policy, { ...byDid, ...change });
    expect(facts({ resolvedDid: undefined })).toBe('TRUST_NO_SOURCE');
    expect(facts({ resolvedDid: { ...resolved, assertionKeys: [keyAt(1)] } })).toBe(unlisted);
    expect(facts({ resolvedDid: { ...resolved, identifiers: ['did:example:other'] } })).toBe(unlisted);
    // a certificate beside the name of an allowed issuer
    expect(facts({ origin: { kind: 'x5c', path: list.path } })).toBe(unlisted);
  }
  // an issuer that calls itself by an allowed name
  const other = 'did:example:other';
  const impostor: TrustFacts = {
    ...byDid,
    origin: { kind: 'did', did: other, key: keyAt(0) },
    resolvedDid: { ...resolved, identifiers: [other, did] },
  };
  expect(outcome(only(allowlist), impostor)).toBe(unlisted);
  expect(outcome(only({ kind: 'did-allowlist' }), byDid)).toBe(unlisted);
});

it('an alias of the issuer', () => {
  const resolved = byDid.resolvedDid;
  if (resolved === undefined) throw new Error('no document');
  const named = (name: string): TrustFacts => ({
    ...byDid,
    origin: { kind: 'did', did: name, key: keyAt(0) },
  });
  expect(outcome(DEFAULT_TRUST_POLICY, named('https://issuer.example'))).toBe('Low');
  expect(outcome(DEFAULT_TRUST_POLICY, named('https://other.example'))).toBe('TRUST_ISSUER_NOT_LISTED');
});

it('levels and combinators', () => {
  const both = [
    { ...euList, confersAssurance: 'Substantial' } as const,
    { ...euList, confersAssurance: 'High' } as const,
    { kind: 'register' } as const,
  ];
  expect(outcome({ sources: both }, byCertificate)).toBe('High');
  expect(outcome({ sources: both, combinator: 'allOf' }, byCertificate)).toBe('TRUST_ISSUER_NOT_LISTED');
  const [low, high] = both;
  if (low === undefined || high === undefined) throw new Error('no source');
  expect(outcome({ sources: [low, high], combinator: 'allOf' }, byCertificate)).toBe('Substantial');
  const strict = { sources: [low, high], combinator: 'allOf', minAssuranceLevel: 'High' } as const;
  expect(outcome({ ...strict, sources: [low, high] }, byCertificate)).toBe('TRUST_ASSURANCE_TOO_LOW');
  expect(outcome({ sources: [euList], minAssuranceLevel: 'Substantial' }, byCertificate)).toBe(
    'TRUST_ASSURANCE_TOO_LOW',
  );
  expect(outcome({ sources: [tenantRoot, { kind: 'register' }] }, byCertificate)).toBe('TRUST_NO_SOURCE');
  for (const combinator of ['anyOf', 'allOf'] as const) {
    expect(outcome({ sources: [], combinator }, byCertificate)).toBe('TRUST_NO_SOURCE');
  }
});
