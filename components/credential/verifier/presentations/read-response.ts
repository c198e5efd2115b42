import { compactDecrypt, importJWK } from 'jose';
import { z } from 'zod';
import { isJsonObject, scanJson, toValue } from '#core/encoding/json.ts';
import { fromUtf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { FormParameters } from '#kit/http/http.ts';
import { refusal } from '../../errors.ts';
import type { StoredRequest } from '../requests/store.ts';

/** What a wallet posted, before its presentations are judged. */
export type WalletResponse =
  /** `vp_token` as JSON text. */
  | { readonly kind: 'presentations'; readonly vpToken: string }
  /** The person or the wallet declined (OpenID4VP 1.0, section 8.5). */
  | { readonly kind: 'declined'; readonly error: string };

/** RFC 6749, section 4.1.2.1. */
const errorCode = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,100}$/;
const privateKey = z.looseObject({ kty: z.string(), kid: z.string() });

/**
 * Reads the form of an answer (OpenID4VP 1.0, sections 8.2 and 8.3). A legacy `presentation_submission` is passed over.
 * @throws AppError invalid RESPONSE_MODE_MISMATCH, RESPONSE_ENCRYPTION, STATE_MISMATCH, DCQL_INVALID
 */
export async function readResponse(form: FormParameters, request: StoredRequest): Promise<WalletResponse> {
  const isEncrypted = request.terms.responseMode === 'direct_post.jwt';
  const jwe = form.get('response');
  if (form.has('error') && jwe === undefined) return declined(form, request);
  if (isEncrypted !== (jwe !== undefined) || (isEncrypted && form.has('vp_token')))
    throw refusal('RESPONSE_MODE_MISMATCH');
  if (jwe !== undefined) return readEncrypted(jwe, request);
  assertState(form.get('state'), request);
  const vpToken = form.get('vp_token');
  if (vpToken === undefined) throw refusal('DCQL_INVALID', { message: 'vp_token is missing' });
  return { kind: 'presentations', vpToken };
}

/** A refusal of the wallet may come in plain, as it has no key of ours where it could not read the request. */
function declined(form: FormParameters, request: StoredRequest): WalletResponse {
  assertState(form.get('state'), request);
  return { kind: 'declined', error: errorCodeOf(form.get('error') ?? '') };
}

/** An error code as results show it: anyone may write one, so that only characters of error codes are shown. */
function errorCodeOf(error: string): string {
  return errorCode.test(error) ? error : 'unknown_error';
}

function assertState(state: unknown, request: StoredRequest): void {
  if (state !== request.state) throw refusal('STATE_MISMATCH');
}

async function readEncrypted(jwe: string, request: StoredRequest): Promise<WalletResponse> {
  const payload = await decrypt(jwe, request);
  assertState(payload['state'], request);
  if (typeof payload['error'] === 'string') return { kind: 'declined', error: errorCodeOf(payload['error']) };
  const { vp_token: vpToken } = payload;
  if (vpToken === undefined) throw refusal('DCQL_INVALID', { message: 'vp_token is missing' });
  return { kind: 'presentations', vpToken: JSON.stringify(vpToken) };
}

async function decrypt(jwe: string, request: StoredRequest): Promise<Readonly<Record<string, unknown>>> {
  const key = privateKey.safeParse(request.decryptionKey);
  if (!key.success) throw refusal('RESPONSE_ENCRYPTION');
  const { kid, ...jwk } = key.data;
  try {
    const opened = await compactDecrypt(jwe, await importJWK({ ...jwk }, 'ECDH-ES'), {
      keyManagementAlgorithms: ['ECDH-ES'],
      contentEncryptionAlgorithms: ['A128GCM', 'A256GCM'],
    });
    const text = opened.protectedHeader.kid === kid ? fromUtf8(opened.plaintext) : undefined;
    const payload = text === undefined ? undefined : toValue(scanJson(text));
    if (isJsonObject(payload)) return payload;
  } catch (cause) {
    // Whatever is wrong with the text: the cause says nothing about what it holds.
    if (!isAppError(cause, 'invalid') && !(cause instanceof Error)) throw cause;
    throw refusal('RESPONSE_ENCRYPTION', { cause });
  }
  throw refusal('RESPONSE_ENCRYPTION');
}
