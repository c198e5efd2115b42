import { sha256 } from '#core/crypto/hash.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { utf8 } from '#core/encoding/text.ts';

/** What the sender of a file declares of its plaintext. */
export interface DeclaredFile {
  readonly fileName: string;
  readonly contentType: string;
  /** Bytes. */
  readonly size: number;
  /** `sha256:` and lower-case hex. */
  readonly hash: string;
}

/** The form in which a declaration is kept: it can be compared, and tells no name. SHA-256, 32 bytes. */
export function declarationDigest({ fileName, contentType, size, hash }: DeclaredFile): Buffer {
  return Buffer.from(sha256(utf8(canonicalJson({ fileName, contentType, size, hash }))));
}
