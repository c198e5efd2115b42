import type { SignatureKey } from '#core/crypto/signature-key.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { type Violation, violation } from '#core/errors/errors.ts';
import type { Certificate } from '#core/trust/certificate.ts';
import type {
  KeyOrigin,
  ResolvedDid,
  TrustFacts,
  TrustListSnapshot,
  TrustPolicy,
} from '#core/trust/evaluate.ts';
import { EXTENSION } from '#core/trust/extensions.ts';
import { validatePath } from '#core/trust/path.ts';
import { judgeX5c } from '#core/trust/x5c.ts';
import type { RevocationLists } from '../trust-sources/revocation-lists.ts';
import type { TrustSources } from '../trust-sources/trust-sources.ts';

/** The key of an issuer, and where it was found. */
export interface FoundIssuer {
  readonly key: SignatureKey;
  readonly origin: KeyOrigin;
  readonly resolvedDid: ResolvedDid | undefined;
}

const organizationDid = /^(did:platform:org:(w[0-9a-z]{20,99}))(?:#[A-Za-z0-9_-]{1,64})?$/;

/**
 * Finds the key that an issuer's JWT says it is signed with: the leaf of `x5c`, or the key of an organisation whose DID is
 * in `kid`. Nothing is fetched from where the credential itself points to.
 * @returns a violation when the header names none
 */
export async function findIssuer(
  { x5c, kid }: JsonObject,
  sources: Pick<TrustSources, 'findOrganizationKey'>,
): Promise<FoundIssuer | Violation> {
  if (x5c !== undefined) return findCertifiedIssuer(x5c);
  const [, did, address] = organizationDid.exec(typeof kid === 'string' ? kid : '') ?? [];
  if (did === undefined || address === undefined)
    return violation('SIGNATURE', 'The header names no key that can be found: it needs x5c, or kid');
  const key = await sources.findOrganizationKey(address);
  if (key === undefined) return violation('TRUST_NO_SOURCE', 'The DID of the issuer names no key');
  return {
    key,
    origin: { kind: 'did', did, key },
    resolvedDid: { identifiers: [did], assertionKeys: [key] },
  };
}

/** The issuer of a chain as `x5c` has it: standard base64, leaf first. */
export function findCertifiedIssuer(x5c: unknown): FoundIssuer | Violation {
  const { violations, result } = judgeX5c(x5c);
  if (result === undefined) return violations[0];
  const [leaf] = result;
  const key = leaf?.key;
  if (key === undefined)
    return violation('TRUST_CHAIN_INVALID', 'The key of the certificate is not supported');
  return { key, origin: { kind: 'x5c', path: result }, resolvedDid: undefined };
}

interface GatherDeps {
  readonly sources: TrustSources;
  readonly revocations: Pick<RevocationLists, 'verdictOf'>;
  /** Time of the decision, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** Gathers what a policy needs to judge an issuer. A source that cannot be asked vouches for none. */
export async function gatherFacts(
  policy: TrustPolicy,
  { origin, resolvedDid }: Pick<FoundIssuer, 'origin' | 'resolvedDid'>,
  { sources, revocations, atMs }: GatherDeps,
): Promise<{ readonly facts: TrustFacts; readonly isStrict: boolean }> {
  const kinds = new Set(policy.sources.map(({ kind }) => kind));
  const path = origin.kind === 'x5c' ? origin.path : [];
  const last = path.at(-1);
  const tenant =
    kinds.has('x509-tenant') && last !== undefined ? await sources.findTenantAnchor(last) : undefined;
  const ids = policy.sources.flatMap(({ kind, trustListId }) =>
    kind === 'trustlist' && trustListId !== undefined ? [trustListId] : [],
  );
  const lists = await Promise.all(
    [...new Set(ids)].map(async (id) => [id, await sources.findTrustList(id)] as const),
  );
  const found = lists.flatMap(([id, list]) => (list === undefined ? [] : [[id, list] as const]));
  const own: Revocation = new Map(
    tenant === undefined || last === undefined ? [] : [[last.thumbprint, tenant.verdict]],
  );
  const listed = issuersOf(path, { lists: found.map(([, { snapshot }]) => snapshot), atMs });
  const facts: TrustFacts = {
    origin,
    resolvedDid,
    tenantAnchors: tenant === undefined ? [] : [tenant.anchor],
    trustLists: new Map(found.map(([id, { snapshot }]) => [id, snapshot])),
    revocation: new Map([...(await verdictsOf(listed, own, revocations)), ...own]),
  };
  return { facts, isStrict: found.some(([, { isStrict }]) => isStrict) };
}

type Revocation = TrustFacts['revocation'];

interface ListedAnchors {
  readonly lists: readonly TrustListSnapshot[];
  readonly atMs: number;
}

/** The certificates of a path that leads to an anchor of a list, each with its issuer; none of a path that is not valid. */
function issuersOf(
  path: readonly Certificate[],
  { lists, atMs }: ListedAnchors,
): ReadonlyMap<Certificate, Certificate> {
  const issuers = new Map<Certificate, Certificate>();
  for (const { anchors } of lists) {
    const { result } = validatePath({ path, anchors, atMs });
    if (result === undefined) continue;
    for (const [at, certificate] of path.entries()) {
      issuers.set(certificate, path[at + 1] ?? issuers.get(certificate) ?? result.anchor);
    }
  }
  return issuers;
}

/** What lists of other authorities say of certificates that name one, where the own ones say nothing. */
async function verdictsOf(
  issuers: ReadonlyMap<Certificate, Certificate>,
  own: Revocation,
  revocations: GatherDeps['revocations'],
): Promise<Revocation> {
  const unknown = [...issuers].filter(
    ([{ thumbprint, extensions }]) => !own.has(thumbprint) && extensions.has(EXTENSION.crlDistributionPoints),
  );
  const judged = unknown.map(
    async ([certificate, issuer]) =>
      [certificate.thumbprint, await revocations.verdictOf(certificate, issuer)] as const,
  );
  return new Map(await Promise.all(judged));
}
