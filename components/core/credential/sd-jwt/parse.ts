import { type CompactJws, findCompactJws } from '../jws.ts';
import { refusePresentation } from '../presentation.ts';

/** The parts of a presented SD-JWT (RFC 9901 section 4); nothing is verified yet. */
export interface PresentedSdJwt {
  readonly issuerJwt: CompactJws;
  /** Disclosures as they were written: their digests cover this text. */
  readonly disclosures: readonly string[];
  readonly keyBinding: CompactJws | undefined;
  /** The text that `sd_hash` covers: all before the key binding, the last tilde included (section 4.3.1). */
  readonly boundText: string;
}

/** Longest presentation, in characters: as long as a whole response may be. */
const MAX_PRESENTATION_LENGTH = 1024 * 1024;
/** Most disclosures of one presentation. */
export const MAX_DISCLOSURES = 1024;

/**
 * Splits a compact SD-JWT, with or without key binding, into its parts (RFC 9901 section 7.1 step 1, 7.3 step 3).
 * @throws AppError unprocessable FORMAT
 */
export function parseSdJwt(text: string): PresentedSdJwt {
  if (text.length > MAX_PRESENTATION_LENGTH) refusePresentation('FORMAT', 'The presentation is too long');
  const parts = text.split('~', MAX_DISCLOSURES + 3);
  const [issuerText = '', ...rest] = parts;
  const bindingText = rest.pop();
  if (bindingText === undefined) refusePresentation('FORMAT', 'An SD-JWT has a tilde behind its JWT');
  if (rest.length > MAX_DISCLOSURES)
    refusePresentation('FORMAT', 'The presentation has too many disclosures');
  const issuerJwt = findCompactJws(issuerText);
  if (issuerJwt === undefined) refusePresentation('FORMAT', "The issuer's JWT is malformed");
  if (rest.includes('')) refusePresentation('FORMAT', 'A disclosure is empty');
  const keyBinding = bindingText === '' ? undefined : findCompactJws(bindingText);
  if (bindingText !== '' && keyBinding === undefined) {
    refusePresentation('FORMAT', 'The key binding is no JWT, or the last disclosure has no tilde behind it');
  }
  const boundText = text.slice(0, text.length - bindingText.length);
  return { issuerJwt, disclosures: rest, keyBinding, boundText };
}
