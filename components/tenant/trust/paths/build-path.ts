import { equalBytes } from '#core/encoding/text.ts';
import { type Certificate, isIssuedBy, isSelfIssued } from '#core/trust/certificate.ts';
import { MAX_PATH_CERTIFICATES } from '#core/trust/path.ts';

interface BuiltPath {
  /** The leaf first, the topmost certificate last. */
  readonly path: readonly Certificate[];
}

interface NoPath {
  readonly message: string;
}

/**
 * Orders the certificates that came with a leaf into its path: each one is followed by its issuer. They may be in any
 * order and contain the leaf, the root and repetitions; every other one must be part of the path. The path is not valid
 * yet: an issuer whose key, or a certificate whose algorithm is not accepted has its place by its name.
 */
export function buildPath(leaf: Certificate, given: readonly Certificate[]): BuiltPath | NoPath {
  const pool = new Map(given.map((certificate) => [certificate.thumbprint, certificate]));
  pool.delete(leaf.thumbprint);
  if (pool.size >= MAX_PATH_CERTIFICATES)
    return { message: `more than ${MAX_PATH_CERTIFICATES} certificates were sent` };
  const path = [leaf];
  for (let last = leaf; !isSelfIssued(last); ) {
    const issuers = [...pool.values()].filter((candidate) => mayBeIssuer(candidate, last));
    const [issuer, other] = issuers;
    if (other !== undefined) return { message: 'two of the certificates could have issued the same one' };
    if (issuer === undefined) break;
    pool.delete(issuer.thumbprint);
    path.push(issuer);
    last = issuer;
  }
  return pool.size === 0
    ? { path }
    : { message: 'one of the certificates is not part of the chain of the leaf' };
}

function mayBeIssuer(candidate: Certificate, certificate: Certificate): boolean {
  if (!equalBytes(candidate.subject, certificate.issuer)) return false;
  const isUnverifiable = certificate.scheme === undefined || candidate.key === undefined;
  return isUnverifiable || isIssuedBy(certificate, candidate);
}
