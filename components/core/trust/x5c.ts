import { isStandardBase64 } from '../encoding/base64.ts';
import { AppError, isAppError } from '../errors/errors.ts';
import { type Judgement, judge } from '../errors/judgement.ts';
import { type Certificate, parseCertificate } from './certificate.ts';
import { MAX_PATH_CERTIFICATES } from './path.ts';

function refuse(message: string, cause?: unknown): never {
  throw new AppError('unprocessable', 'TRUST_CHAIN_INVALID', message, { cause });
}

function parseElement(value: unknown): Certificate {
  if (typeof value !== 'string' || value === '' || !isStandardBase64(value)) {
    refuse('An element of x5c is no base64');
  }
  return parseCertificate(Buffer.from(value, 'base64'));
}

/**
 * Reads the header `x5c` (RFC 7515 section 4.1.6): 1 to 5 certificates in standard base64, the leaf first. Their order,
 * and that the anchor is not among them, is judged by `validatePath`. Violations TRUST_CHAIN_INVALID.
 */
export function judgeX5c(value: unknown): Judgement<readonly Certificate[]> {
  return judge(() => {
    if (!Array.isArray(value) || value.length === 0 || value.length > MAX_PATH_CERTIFICATES) {
      refuse(`x5c is no list of 1 to ${MAX_PATH_CERTIFICATES} certificates`);
    }
    try {
      return value.map(parseElement);
    } catch (cause) {
      if (!isAppError(cause, 'invalid')) throw cause;
      return refuse(cause.message, cause);
    }
  });
}
