import { AppError, type AppErrorOptions, type ErrorKind, isAppError } from '#core/errors/errors.ts';
import { type DeclaredRefusal, refusalOf } from '#kit/http/http.ts';

/** Every reason to refuse an SVID: kind, code, and the text for the caller. */
const refusals = {
  token_missing: ['unauthenticated', 'IDENTITY_TOKEN_REFUSED', 'A ServiceAccount token is required.'],
  token_rejected: ['unauthenticated', 'IDENTITY_TOKEN_REFUSED', 'The cluster does not accept the token.'],
  audience: ['unauthenticated', 'IDENTITY_TOKEN_REFUSED', 'The token is for another audience.'],
  not_a_service_account: ['forbidden', 'IDENTITY_FORBIDDEN', 'The token is not of a ServiceAccount.'],
  namespace: ['forbidden', 'IDENTITY_FORBIDDEN', 'The namespace is not that of the installation.'],
  service_account: ['forbidden', 'IDENTITY_FORBIDDEN', 'The ServiceAccount has no identity.'],
  pod_name_missing: ['forbidden', 'IDENTITY_FORBIDDEN', 'The token is not bound to a pod.'],
  pod_name: ['forbidden', 'IDENTITY_FORBIDDEN', 'The pod is no member of the ServiceAccount’s set.'],
  csr_unreadable: ['invalid', 'CSR_REFUSED', 'The certificate request cannot be read.'],
  csr_key: ['invalid', 'CSR_REFUSED', 'The key must be an ECDSA key on P-256.'],
  csr_signature: ['invalid', 'CSR_REFUSED', 'The certificate request is not signed by its key.'],
  csr_name: ['invalid', 'CSR_REFUSED', 'The certificate request asks for another name.'],
  token_review: ['unavailable', 'TOKEN_REVIEW_UNAVAILABLE', 'The cluster cannot judge tokens now.'],
  overloaded: ['rate_limited', 'RATE_LIMITED', 'Too many requests.'],
  authority: ['unavailable', 'AUTHORITY_UNAVAILABLE', 'The certificate authority cannot be used now.'],
} as const satisfies Record<string, readonly [ErrorKind, string, string]>;

/** Refusals of the route; several reasons share a code. */
export const refusedSvid: readonly DeclaredRefusal[] = Object.values(refusals).map(
  ([kind, code, message]) => ({
    kind,
    code,
    message,
  }),
);

type RefusalReason = keyof typeof refusals;

/** The refusal for a reason; its details contain the reason for logs, metrics and the caller. */
export function refusal(reason: RefusalReason, options: AppErrorOptions = {}): AppError {
  const [kind, code, message] = refusals[reason];
  return new AppError(kind, code, message, { ...options, details: { reason } });
}

/**
 * The reason of a refusal, or its status when it was thrown elsewhere: a bounded set of values for the metric's label.
 */
export function reasonOf(error: unknown): string {
  const reason = isAppError(error) ? error.details?.['reason'] : undefined;
  if (typeof reason === 'string' && Object.hasOwn(refusals, reason)) return reason;
  const { status } = refusalOf(error);
  if (status >= 500) return 'internal';
  return { 413: 'too_large', 429: 'rate_limited' }[status] ?? 'malformed';
}

/** Error codes of the svid-issuer. */
const codeKinds = {
  AUTHORITY_DAMAGED: 'conflict',
  ISSUER_SOCKET: 'unavailable',
  ISSUER_SOCKET_PATH: 'invalid',
  ISSUER_TRUST_DOMAIN: 'conflict',
  KUBERNETES_CONFLICT: 'conflict',
  KUBERNETES_NOT_FOUND: 'not_found',
  KUBERNETES_UNAVAILABLE: 'unavailable',
} as const satisfies Record<string, ErrorKind>;

/** An error with one of these codes. */
export function issuerError(
  code: keyof typeof codeKinds,
  message: string,
  options?: AppErrorOptions,
): AppError {
  return new AppError(codeKinds[code], code, message, options);
}
