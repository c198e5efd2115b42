import { AppError, isAppError } from '../errors/errors.ts';

const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const URL_SAFE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function refuse(): never {
  throw new AppError('invalid', 'INVALID_BASE64', 'Text is not base64');
}

/** The characters before the padding, and whether the padding fits their number. */
function withoutPadding(text: string): { readonly body: string; readonly fits: boolean } {
  const body = text.replace(/={1,2}$/, '');
  const padding = text.length - body.length;
  const left = body.length % 4;
  return { body, fits: left !== 1 && (padding === 0 || (left > 0 && padding === 4 - left)) };
}

/** Whether the last character has bits beyond the last byte: such text would be a second spelling of the same bytes. */
function hasStrayBits(body: string, alphabet: string): boolean {
  const left = body.length % 4;
  if (left === 0) return false;
  return alphabet.indexOf(body.charAt(body.length - 1)) % (left === 2 ? 16 : 4) !== 0;
}

/**
 * Decodes base64 text in the standard or the URL-safe alphabet, padded or not (RFC 4648 sections 4 and 5). Everything
 * else is refused: both alphabets in one text, white space, wrong padding, bits set after the last byte.
 * @throws AppError invalid INVALID_BASE64
 */
export function decodeBase64Any(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64');
  // Fast path: nearly all input is in the standard padded form.
  return bytes.toString('base64') === text ? bytes : decodeOther(text);
}

/** The same; undefined for what is refused. */
export function findBase64Any(text: string): Uint8Array | undefined {
  try {
    return decodeBase64Any(text);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function decodeOther(text: string): Uint8Array {
  const { body, fits } = withoutPadding(text);
  const standard = /^[A-Za-z0-9+/]*$/.test(body);
  if (!fits || (!standard && !/^[A-Za-z0-9_-]*$/.test(body))) refuse();
  if (hasStrayBits(body, standard ? STANDARD : URL_SAFE)) refuse();
  return Buffer.from(body, standard ? 'base64' : 'base64url');
}

/** Standard base64 with padding, the only form that is written. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** URL-safe base64 without padding (RFC 7515), for tokens and nonces. */
export function encodeBase64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}

/**
 * Whether text is URL-safe base64 as `encodeBase64Url` writes it (RFC 7515 section 2): no padding, no white space, no
 * bits beyond the last byte. Two different texts that pass never decode to the same bytes.
 */
export function isBase64Url(text: string): boolean {
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}

/** Whether text is base64 as `encodeBase64` writes it: different texts that pass never decode to the same bytes. */
export function isStandardBase64(text: string): boolean {
  return Buffer.from(text, 'base64').toString('base64') === text;
}

/** The standard padded spelling of any accepted spelling; throws like decodeBase64Any. */
export function normaliseBase64(text: string): string {
  return encodeBase64(decodeBase64Any(text));
}
