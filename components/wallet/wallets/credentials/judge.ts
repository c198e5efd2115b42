import type { StatusReference } from '#core/credential/status-list/reference.ts';
import type { ListedStatus } from '../../database/schema.ts';

/** What a credential says of its issuer: certificates in DER, the leaf first, or the DID URL of a key. */
export interface IssuerClaim {
  readonly certificates: readonly Uint8Array[];
  /** Empty when there are certificates. */
  readonly keyId: string;
}

/** What the credential service says of an issuer. */
export interface IssuerJudgement {
  /** SubjectPublicKeyInfo; undefined when no key was found. */
  readonly publicKey: Uint8Array | undefined;
  /** Validity of the leaf certificate in milliseconds since the epoch. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly isTrusted: boolean;
  /** Why not; undefined for an issuer that is trusted. */
  readonly reason: string | undefined;
  /** Undefined when it cannot be learnt, or when the issuer is not trusted. */
  readonly status: ListedStatus | undefined;
}

/** Whether a person may believe who asks. */
export type VerifierAuthState = 'TrustedListVerified' | 'AuthenticUntrusted' | 'Unverifiable';

/** A request of a verifier that was fetched and judged. */
export interface ResolvedRequest {
  readonly clientId: string;
  readonly verifierHost: string;
  readonly responseUri: string;
  readonly responseMode: string;
  readonly nonce: string;
  readonly state: string | undefined;
  /** DCQL, judged. */
  readonly query: unknown;
  readonly authState: VerifierAuthState;
  readonly anchorSetId: string | undefined;
  readonly reason: string | undefined;
}

/** How a request came to a wallet. */
export interface RequestSource {
  readonly requestUri?: string | undefined;
  readonly requestObject?: string | undefined;
  readonly clientId?: string | undefined;
}

/** The credential service, which alone reaches addresses of others. Errors: unavailable CREDENTIALS_UNAVAILABLE. */
export interface CredentialJudge {
  judgeIssuer(
    issuer: IssuerClaim,
    of: { readonly isDocument: boolean; readonly status: StatusReference | undefined },
  ): Promise<IssuerJudgement>;
  /** @throws AppError also REQUEST_OBJECT_INVALID, REQUEST_HOST_MISMATCH, REQUEST_UNREACHABLE, DCQL_INVALID */
  resolveRequest(source: RequestSource): Promise<ResolvedRequest>;
}
