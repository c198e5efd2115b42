import { sha256Hex } from '#core/crypto/hash.ts';

/** A type of credential in a format, as wallets see it. */
export interface Configuration {
  readonly id: string;
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  /** `vct`, or the document type. */
  readonly credentialType: string;
  readonly displayName: string;
  /** Names of claims of the top level; of an mdoc, JSON Pointers of namespace and element. */
  readonly claims: readonly string[];
}

const mostSlug = 80;

/** The id of a configuration from its type: lower case, runs of other characters as `-`. */
export function slugOf(credentialType: string): string {
  const slug = credentialType
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, mostSlug);
  return slug === '' ? `type-${sha256Hex(credentialType).slice(0, 12)}` : slug;
}
