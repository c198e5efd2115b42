import { z } from 'zod';
import { isReadableLine } from '#core/encoding/readable.ts';
import { type Outbound, OutboundError } from '#kit/outbound/outbound.ts';

const address = z.url().max(2048);
const names = z.array(z.string().max(200)).max(500);

/** What a provider publishes about itself (OpenID Connect Discovery 1.0, section 3), as far as it is used. */
export const providerMetadata = z.object({
  issuer: z.string().min(1).max(2048).refine(isReadableLine),
  authorization_endpoint: address,
  token_endpoint: address,
  userinfo_endpoint: address.optional(),
  jwks_uri: address.optional(),
  scopes_supported: names.optional(),
  token_endpoint_auth_methods_supported: names.optional(),
  id_token_signing_alg_values_supported: names.optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});

export type ProviderMetadata = z.output<typeof providerMetadata>;

/** Why a provider cannot be used; the message is for the administrator who entered its issuer. */
export class DiscoveryError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DiscoveryError';
  }
}

/** Microsoft's shared tenants: the holder of any account there could sign in. */
const sharedTenants = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)(?:\/|$)/i;

/**
 * What is wrong with the text of an issuer, before anything is asked; undefined when it may be an issuer.
 */
export function faultOfIssuer(door: Outbound, issuerUrl: string): string | undefined {
  if (sharedTenants.test(issuerUrl)) {
    return 'names accounts of every organisation: enter https://login.microsoftonline.com/{id of your tenant}/v2.0';
  }
  if (/[?#]/.test(issuerUrl)) return 'must have no query and no fragment';
  return door.admits(issuerUrl) ? undefined : 'must be an https address of a public host';
}

/**
 * Reads what a provider publishes. Every endpoint must be one that may be asked.
 * @throws DiscoveryError
 */
export async function discoverProvider(door: Outbound, issuerUrl: string): Promise<ProviderMetadata> {
  const fault = faultOfIssuer(door, issuerUrl);
  if (fault !== undefined) throw new DiscoveryError(fault);
  const issuer = withoutSlash(issuerUrl);
  const document = await read(door, `${issuer}/.well-known/openid-configuration`);
  const parsed = providerMetadata.safeParse(document);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new DiscoveryError(`its configuration is malformed at ${issue?.path.join('.') || 'its root'}`);
  }
  const metadata = parsed.data;
  if (withoutSlash(metadata.issuer) !== issuer) {
    throw new DiscoveryError(`its configuration names another issuer: ${metadata.issuer}`);
  }
  requireEndpoints(door, metadata);
  return metadata;
}

function requireEndpoints(door: Outbound, metadata: ProviderMetadata): void {
  if (metadata.jwks_uri === undefined) throw new DiscoveryError('its configuration names no jwks_uri');
  const endpoints = ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'] as const;
  for (const name of endpoints) {
    const url = metadata[name];
    if (url !== undefined && !door.admits(url)) {
      throw new DiscoveryError(`its ${name} is no https address of a public host`);
    }
  }
}

const withoutSlash = (text: string) => text.replace(/\/$/, '');

async function read(door: Outbound, url: string): Promise<unknown> {
  try {
    const { status, body } = await door.send(url, { headers: { accept: 'application/json' } });
    if (status !== 200) throw new DiscoveryError(`its configuration was answered with status ${status}`);
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    if (error instanceof OutboundError) throw new DiscoveryError(error.message, { cause: error });
    if (error instanceof SyntaxError)
      throw new DiscoveryError('its configuration is not JSON', { cause: error });
    throw error;
  }
}
