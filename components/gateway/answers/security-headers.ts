/** Security headers of every answer, the gateway's own and the services', as a flat list. */
export const securityHeaders: readonly string[] = [
  'x-api-version',
  '1',
  'x-content-type-options',
  'nosniff',
  'x-frame-options',
  'DENY',
  'referrer-policy',
  'strict-origin-when-cross-origin',
  'content-security-policy',
  "default-src 'none'; frame-ancestors 'none'",
  'permissions-policy',
  'camera=(), geolocation=(), microphone=(), payment=()',
];

/** Added where the client's connection is known to be TLS. */
export const strictTransport: readonly string[] = [
  'strict-transport-security',
  'max-age=31536000; includeSubDomains',
];
