import type { Certificate } from './certificate.ts';
import { isSelfIssued, isSignedBy, MAX_PATH_LENGTH } from './validate-path.ts';

interface BuiltPath {
  /** The leaf first, the topmost certificate last. */
  readonly path: readonly Certificate[];
}

interface NoPath {
  readonly message: string;
}

/**
 * Orders the certificates that came with a leaf into its path: each one is followed by its issuer. They may be in any
 * order and contain the leaf, the root and repetitions; every other one must be part of the path.
 */
export function buildPath(leaf: Certificate, given: readonly Certificate[]): BuiltPath | NoPath {
  const pool = new Map(given.map((certificate) => [certificate.thumbprint, certificate]));
  pool.delete(leaf.thumbprint);
  if (pool.size >= MAX_PATH_LENGTH) return { message: `more than ${MAX_PATH_LENGTH} certificates were sent` };
  const path = [leaf];
  for (let last = leaf; !isSelfIssued(last); ) {
    const issuers = [...pool.values()].filter(
      (candidate) => Buffer.from(candidate.subject).equals(last.issuer) && isSignedBy(last, candidate),
    );
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
