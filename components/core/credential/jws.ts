import { isBase64Url } from '../encoding/base64.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '../encoding/json.ts';
import { utf8 } from '../encoding/text.ts';
import { isAppError } from '../errors/errors.ts';

/** A JWS in compact serialisation whose payload is a JSON object (RFC 7515 section 7.1); nothing is verified yet. */
export interface CompactJws {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  /** What is signed: ASCII bytes of header and payload with the dot between them. */
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
}

/**
 * Reads base64url of JSON text: unpadded, without stray bits, UTF-8 without duplicate member names. Undefined for
 * anything else.
 */
export function findEncodedJson(text: string): { readonly value: unknown } | undefined {
  if (!isBase64Url(text)) return undefined;
  try {
    return { value: toValue(scanJson(Buffer.from(text, 'base64url'))) };
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

/** Header parameters that change what is signed or which rules apply; none of them is understood here. */
const UNSUPPORTED_HEADERS = ['crit', 'b64', 'zip', 'enc'];

/**
 * Reads a compact JWS with a JSON object as payload. Undefined when it is malformed, has duplicate member names or uses
 * `crit`, `b64`, `zip` or `enc`.
 */
export function findCompactJws(text: string): CompactJws | undefined {
  const parts = text.split('.', 4);
  const [protectedHeader = '', encodedPayload = '', encodedSignature = ''] = parts;
  if (parts.length !== 3 || encodedSignature === '' || !isBase64Url(encodedSignature)) return undefined;
  const header = findEncodedJson(protectedHeader)?.value;
  const payload = findEncodedJson(encodedPayload)?.value;
  if (!isJsonObject(header) || !isJsonObject(payload)) return undefined;
  if (UNSUPPORTED_HEADERS.some((name) => Object.hasOwn(header, name))) return undefined;
  const signature = Buffer.from(encodedSignature, 'base64url');
  return { header, payload, signed: utf8(`${protectedHeader}.${encodedPayload}`), signature };
}
