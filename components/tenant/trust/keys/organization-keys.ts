import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { refusal } from '../../errors.ts';

/** `issuer`: the key that certificates of an organisation name; `root`: the key of its own authority. */
export type KeyUse = 'issuer' | 'root';

/** An organisation and the address that its wallet must have. */
export interface KeyOwner {
  readonly organizationId: string;
  readonly walletAddress: string;
}

export type KeySource = 'Primary' | 'HaipCoKey';

/** The public part of a P-256 key of an organisation. */
export interface OrganizationKey {
  readonly spki: Buffer;
  /** RFC 7638, SHA-256, base64url. */
  readonly thumbprint: string;
  readonly source: KeySource;
}

/**
 * The keys of organisations, which the wallet service holds.
 *
 * `get` and `sign` throw WALLET_NOT_FOUND unless the address is that of the present wallet of the organisation,
 * CERT_KEY_NOT_ELIGIBLE, WALLET_LOCKED, WALLETS_UNAVAILABLE.
 */
export interface OrganizationKeys {
  /** The address of the active wallet of an organisation. @throws WALLETS_UNAVAILABLE */
  findWallet(organizationId: string): Promise<string | undefined>;
  get(owner: KeyOwner, use: KeyUse): Promise<OrganizationKey>;
  /** Signs a SHA-256 digest; r and s, 32 bytes each. */
  sign(owner: KeyOwner, use: KeyUse, digest: Uint8Array): Promise<Buffer>;
}

/**
 * The key of a SubjectPublicKeyInfo, which the wallet service sent.
 * @throws WALLETS_UNAVAILABLE when it is no P-256 key in its only form
 */
export function organizationKeyOf(spki: Buffer, source: KeySource): OrganizationKey {
  const key = findKey(spki);
  const isP256 = key?.asymmetricKeyDetails?.namedCurve === 'prime256v1';
  if (key === undefined || !isP256 || !key.export({ format: 'der', type: 'spki' }).equals(spki))
    throw refusal('WALLETS_UNAVAILABLE', { message: 'The wallet service answered with an unusable key.' });
  const { crv, kty, x, y } = key.export({ format: 'jwk' });
  const digest = createHash('sha256').update(canonicalBytes({ crv, kty, x, y })).digest();
  return { spki, thumbprint: encodeBase64Url(digest), source };
}

function findKey(spki: Buffer): KeyObject | undefined {
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

/** Signs bytes with the key of an organisation, as an X.509 structure is signed. */
export type Sign = (bytes: Uint8Array) => Promise<Buffer>;

/**
 * The signature of a key, verified before it is used: another key than the named one must not end in a certificate.
 * @throws WALLETS_UNAVAILABLE for a signature that the key does not verify, and what `sign` throws
 */
export function signWith(keys: OrganizationKeys, owner: KeyOwner, signer: Signer): Sign {
  const key = createPublicKey({ key: signer.key.spki, format: 'der', type: 'spki' });
  return async (bytes) => {
    const digest = createHash('sha256').update(bytes).digest();
    const signature = await keys.sign(owner, signer.use, digest);
    if (signature.length === 64 && verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, signature))
      return signature;
    throw refusal('WALLETS_UNAVAILABLE', { message: 'The wallet service signed with another key.' });
  };
}

interface Signer {
  readonly key: OrganizationKey;
  readonly use: KeyUse;
}
