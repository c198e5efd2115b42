import { z } from 'zod';
import { commonSettings, databaseSettings, endpoint, flag, secretFile } from '#kit/config/config.ts';
import { outboundAllowed } from '#kit/outbound/outbound.ts';
import { PROFILES } from './protocol/profile.ts';

const loopback: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Plain HTTP is for addresses that do not leave the machine or the cluster. */
function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.search !== '' || url.hash !== '' || url.username !== '') return false;
  if (url.pathname.length > 1 && url.pathname.endsWith('/')) return false;
  const { protocol, hostname } = url;
  if (protocol === 'https:') return true;
  return (
    protocol === 'http:' && (loopback.includes(hostname) || /\.svc(?:\.cluster\.local)?$/.test(hostname))
  );
}

/** Every setting of the credential service. */
export const credentialSettings = z.object({
  ...commonSettings,
  ...databaseSettings,
  CHANCERY_TENANT_HTTPS: endpoint.describe('Tenant service: keys of tokens (host:port)'),
  CHANCERY_TENANT_GRPC: endpoint.describe('Tenant service: revocations, certificates (host:port)'),
  CHANCERY_TENANT_MTLS: endpoint.describe('Tenant service: token listener (host:port)'),
  CHANCERY_WALLET_GRPC: endpoint.describe('Wallet service: wallets of organisations (host:port)'),
  CHANCERY_WALLET_HTTPS: endpoint.describe('Wallet service: signatures of issuers (host:port)'),
  CHANCERY_REGISTER_HTTPS: endpoint.describe('Register service: records of statuses (host:port)'),
  Haip__IssuerUrl: z
    .string()
    .refine(
      isIssuerUrl,
      'expected https://host[/path] without a slash at the end; http for this machine or cluster',
    )
    .transform((text) => text.replace(/\/$/, ''))
    .describe(
      'Public address of the credential issuer, which wallets know it by and credentials name; https outside of this machine and cluster.',
    ),
  Haip__Profile: z
    .enum(PROFILES)
    .default('openid4vc-1.0')
    .describe('Dialect of the exchange: openid4vc-1.0, or haip-1.0, which serves nothing weaker.'),
  Haip__AttestationAuthorities: z
    .string()
    .optional()
    .describe('PEM file with the authorities that attest wallets and keys; required in haip-1.0.'),
  Haip__RequireKeyAttestation: flag
    .default(false)
    .describe('Whether the keys of credentials must be attested (OpenID4VCI 1.0, appendix D).'),
  Haip__PublicHost: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/)
    .optional()
    .describe(
      'Host by which wallets know the verifier, a dNSName of its certificate; that of Haip__IssuerUrl when absent.',
    ),
  Haip__VerifierCertificate: z
    .string()
    .optional()
    .describe(
      'File with the P-256 key of the verifier and its certificates: PEM with the leaf first, PFX (PKCS #12), or a directory with tls.key and tls.crt; read again when it changes. In the development profile a self-signed one when absent.',
    ),
  Haip__VerifierAuthorities: z
    .string()
    .optional()
    .describe(
      'PEM file with authorities of verifiers that holders may believe, beside imported trust lists.',
    ),
  Haip__VerifierCertificatePassword: secretFile
    .optional()
    .describe('File with the password of the PFX file, or of the key in PEM.'),
  CHANCERY_OUTBOUND_ALLOWED: outboundAllowed,
});

export type CredentialConfig = z.output<typeof credentialSettings>;
