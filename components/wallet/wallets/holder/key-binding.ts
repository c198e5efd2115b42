import { isBase64Url } from '#core/encoding/base64.ts';
import { findMember, type JsonObjectNode, scanJson } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { refusal } from '../../errors.ts';

/** Signature algorithms of holder keys, as JOSE names them. */
export type KeyBindingAlgorithm = 'ES256' | 'EdDSA';

const mostSecondsApart = 300;
/** Header parameters that change how a signature is verified, or what it covers (RFC 7515, RFC 7797). */
const refusedParameters = ['crit', 'b64'] as const;

interface KeyBindingRules {
  readonly algorithm: KeyBindingAlgorithm;
  readonly nowMs: number;
}

/**
 * Judges the signing input of a key-binding JWT (RFC 9901, section "Key Binding JWT"), so that the holder key signs no
 * other kind of statement: two segments, header with `typ` kb+jwt and the algorithm of the key, payload with nonce,
 * audience, sd_hash and an `iat` within 300 s of now.
 * @throws AppError invalid KB_HEADER_INVALID, KB_ALG_MISMATCH or KB_PAYLOAD_INVALID
 */
export function assertKeyBinding(signingInput: string, { algorithm, nowMs }: KeyBindingRules): void {
  const [header = '', payload = '', ...more] = signingInput.split('.');
  if (more.length > 0)
    throw refusal('KB_HEADER_INVALID', { message: 'the input has more than two segments' });
  assertHeader(parseSegment(header, 'KB_HEADER_INVALID'), algorithm);
  assertPayload(parseSegment(payload, 'KB_PAYLOAD_INVALID'), nowMs);
}

function assertHeader(header: JsonObjectNode, algorithm: KeyBindingAlgorithm): void {
  const refused = refusedParameters.find((name) => findMember(header, name) !== undefined);
  if (refused !== undefined) {
    throw refusal('KB_HEADER_INVALID', { message: `the header must not have ${refused}` });
  }
  if (textOf(header, 'typ') !== 'kb+jwt') {
    throw refusal('KB_HEADER_INVALID', { message: 'the header must have typ kb+jwt' });
  }
  const alg = textOf(header, 'alg');
  if (alg === undefined) throw refusal('KB_HEADER_INVALID', { message: 'the header must have alg' });
  if (alg !== algorithm)
    throw refusal('KB_ALG_MISMATCH', { message: `the holder key signs with ${algorithm}` });
}

function assertPayload(payload: JsonObjectNode, nowMs: number): void {
  for (const name of ['nonce', 'aud', 'sd_hash']) {
    if ((textOf(payload, name) ?? '') === '') {
      throw refusal('KB_PAYLOAD_INVALID', { message: `the payload must have ${name}, a text` });
    }
  }
  const iat = findMember(payload, 'iat');
  if (iat?.kind !== 'number' || !Number.isSafeInteger(iat.value)) {
    throw refusal('KB_PAYLOAD_INVALID', { message: 'the payload must have iat, a whole number' });
  }
  if (Math.abs(iat.value - Math.floor(nowMs / 1000)) > mostSecondsApart) {
    throw refusal('KB_PAYLOAD_INVALID', { message: `iat is more than ${mostSecondsApart} s from now` });
  }
}

type SegmentCode = 'KB_HEADER_INVALID' | 'KB_PAYLOAD_INVALID';

/** The JSON object of a segment, whose names are unique: a verifier may read another one of two equal names. */
function parseSegment(segment: string, code: SegmentCode): JsonObjectNode {
  if (segment === '' || !isBase64Url(segment)) {
    throw refusal(code, { message: 'a segment is not base64url' });
  }
  try {
    const node = scanJson(Buffer.from(segment, 'base64url'));
    if (node.kind === 'object') return node;
  } catch (cause) {
    if (!isAppError(cause, 'invalid')) throw cause;
    throw refusal(code, { message: cause.message, cause });
  }
  throw refusal(code, { message: 'a segment is not a JSON object' });
}

function textOf(node: JsonObjectNode, name: string): string | undefined {
  const member = findMember(node, name);
  return member?.kind === 'string' ? member.value : undefined;
}
