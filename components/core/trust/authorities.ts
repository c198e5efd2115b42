import { encodeBase64Url } from '../encoding/base64.ts';
import { judge } from '../errors/judgement.ts';
import type { Certificate } from './certificate.ts';
import { authorityKeyId } from './extensions.ts';

/**
 * Whether a certificate of a path names the key of one of some authorities as its authority's (OpenID4VP 1.0 section
 * 6.1.1.1). Whether that authority is trusted is judged elsewhere.
 * @param path leaf first; empty for an issuer without certificates
 * @param keyIds key identifiers, base64url
 */
export function isOfAuthority(path: readonly Certificate[], keyIds: readonly string[]): boolean {
  return path.some((certificate) => {
    // An extension that cannot be read names none.
    const keyId = judge(() => authorityKeyId(certificate)).result;
    return keyId !== undefined && keyIds.includes(encodeBase64Url(keyId));
  });
}
