/** Error codes of the endpoints of wallets: RFC 6749, 6750 and 9449, OpenID4VCI 1.0 sections 6.3, 7 and 8.3.1. */
export type ProtocolErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'invalid_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'
  | 'invalid_token'
  | 'invalid_credential_request'
  | 'unknown_credential_configuration'
  | 'unknown_credential_identifier'
  | 'invalid_proof'
  | 'invalid_nonce'
  | 'invalid_encryption_parameters'
  | 'credential_request_denied'
  | 'slow_down'
  | 'temporarily_unavailable'
  | 'server_error';

interface ProtocolErrorOptions {
  /** 400 when absent. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
  /** A further code for clients to match on. */
  readonly code?: string;
}

/** A refusal in the format of the protocol: `error` and `error_description`. */
export class ProtocolError extends Error {
  readonly error: ProtocolErrorCode;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly code: string | undefined;

  constructor(error: ProtocolErrorCode, description: string, options: ProtocolErrorOptions = {}) {
    super(description, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ProtocolError';
    this.error = error;
    this.status = options.status ?? 400;
    this.headers = options.headers ?? {};
    this.code = options.code;
  }
}
