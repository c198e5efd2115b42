import { findPath } from '#core/blueprint/pointer.ts';
import { batchSize, PRE_AUTHORIZED_GRANT } from '../../protocol/grants.ts';
import { POSSESSION_ALGORITHMS } from '../../protocol/possession.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import type { Configuration } from './configuration.ts';

/** ES256 as COSE numbers it (RFC 9053, section 2.1). */
const ES256_OF_COSE = -7;

/** Algorithms of encrypted answers. */
export const RESPONSE_ENCRYPTION = { algorithms: ['ECDH-ES'], encodings: ['A128GCM', 'A256GCM'] } as const;

/** The issuer's metadata (OpenID4VCI 1.0, section 12.2.4). */
export function issuerMetadata(
  issuer: string,
  configurations: readonly Configuration[],
  requiresKeyAttestation: boolean,
) {
  return {
    credential_issuer: issuer,
    credential_endpoint: `${issuer}/credential`,
    nonce_endpoint: `${issuer}/nonce`,
    batch_credential_issuance: { batch_size: batchSize },
    credential_response_encryption: {
      alg_values_supported: [...RESPONSE_ENCRYPTION.algorithms],
      enc_values_supported: [...RESPONSE_ENCRYPTION.encodings],
      encryption_required: false,
    },
    display: [{ name: 'Chancery', locale: 'en' }],
    credential_configurations_supported: Object.fromEntries(
      configurations.map((configuration) => [
        configuration.id,
        supported(configuration, requiresKeyAttestation),
      ]),
    ),
  };
}

function supported(
  { id, format, credentialType, displayName, claims }: Configuration,
  requiresKeyAttestation: boolean,
) {
  const isMdoc = format === 'mso_mdoc';
  const paths = isMdoc ? elementPaths(claims) : claims.map((name) => [name]);
  const algorithms = isMdoc ? ['ES256'] : [...POSSESSION_ALGORITHMS];
  return {
    format,
    ...(isMdoc ? { doctype: credentialType } : { vct: credentialType }),
    scope: id,
    cryptographic_binding_methods_supported: [isMdoc ? 'cose_key' : 'jwk'],
    credential_signing_alg_values_supported: isMdoc ? [ES256_OF_COSE] : ['ES256'],
    proof_types_supported: {
      jwt: {
        proof_signing_alg_values_supported: algorithms,
        ...(requiresKeyAttestation && { key_attestations_required: {} }),
      },
      ...(requiresKeyAttestation && {
        attestation: { proof_signing_alg_values_supported: ['ES256'], key_attestations_required: {} },
      }),
    },
    credential_metadata: {
      display: [{ name: displayName, locale: 'en' }],
      // Of an empty list clients make a fault.
      ...(paths.length > 0 && { claims: paths.map((path) => ({ path })) }),
    },
  };
}

/** A path into an mdoc has two names (appendix C.2); rows of earlier builds have namespaces alone, which lead to none. */
function elementPaths(pointers: readonly string[]): string[][] {
  return pointers.flatMap((pointer) => {
    const path = findPath(pointer);
    return path?.length === 2 ? [[...path]] : [];
  });
}

/** The metadata of the token endpoint (RFC 8414); of the grants of the profile alone. */
export function authorizationServerMetadata(issuer: string, profile: Profile) {
  const common = {
    issuer,
    token_endpoint: `${issuer}/token`,
    dpop_signing_alg_values_supported: [...POSSESSION_ALGORITHMS],
  };
  if (!isHighAssurance(profile)) {
    return {
      ...common,
      grant_types_supported: [PRE_AUTHORIZED_GRANT],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ['none'],
      'pre-authorized_grant_anonymous_access_supported': true,
    };
  }
  return {
    ...common,
    grant_types_supported: ['authorization_code', 'refresh_token'],
    response_types_supported: ['code'],
    authorization_endpoint: `${issuer}/authorize`,
    pushed_authorization_request_endpoint: `${issuer}/par`,
    require_pushed_authorization_requests: true,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    authorization_details_types_supported: ['openid_credential'],
    token_endpoint_auth_methods_supported: ['attest_jwt_client_auth'],
    client_attestation_signing_alg_values_supported: ['ES256'],
    client_attestation_pop_signing_alg_values_supported: ['ES256'],
  };
}
