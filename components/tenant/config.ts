import { isIP } from 'node:net';
import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { commonSettings, databaseSettings, endpoint, flag, secretFile } from '#kit/config/config.ts';
import { outboundAllowed } from '#kit/outbound/outbound.ts';
import { isWebhook } from './people/messages/webhook.ts';
import { returnToHosts } from './requests/return-to.ts';
import { parseSocialSettings } from './sign-in/federation/providers/settings.ts';
import { defaultLockoutSteps, lockoutSteps } from './sign-in/lockout/lockout.ts';

function isSmtpUrl(text: string): boolean {
  const { protocol, hostname } = URL.parse(text.trim()) ?? {};
  return (protocol === 'smtp:' || protocol === 'smtps:') && hostname !== '';
}

const port = z.coerce.number().int().min(0).max(65_535);

/** Every setting of the tenant process. */
export const tenantSettings = z.object({
  ...commonSettings,
  ...databaseSettings,
  CHANCERY_TENANT_MTLS_PORT: port
    .default(8443)
    .describe('Mutual-TLS listener of the two internal token routes; 0 takes any free port.'),
  CHANCERY_TENANT_INTERNAL_PORT: port
    .default(8081)
    .describe(
      'Plain listener of the internal routes, reachable inside the network only; 0 takes any free port.',
    ),
  CHANCERY_WALLET_GRPC: endpoint.describe(
    'Wallet service, gRPC: its event log, for the wallet in tokens; it may start later (host:port).',
  ),
  CHANCERY_WALLET_HTTPS: endpoint.describe(
    'Wallet service, HTTP: signatures under certificates of organisations; it may start later (host:port).',
  ),
  CHANCERY_BASE_URL: z
    .url()
    .default('http://127.0.0.1:8080')
    .transform((text) => text.replace(/\/+$/, ''))
    .describe('Public address of the gateway, for the token server metadata.'),
  CHANCERY_ADMIN_EMAIL: z
    .email()
    .max(254)
    .describe('E-mail address of the administrator that is seeded when the database has none.'),
  CHANCERY_ADMIN_PASSWORD_FILE: secretFile.describe(
    'File with the password of the seeded administrator; the password of an existing account is not changed.',
  ),
  CHANCERY_SERVICE_SECRETS_DIR: z
    .string()
    .optional()
    .describe(
      'Directory with one file per client id holding its secret; read at seeding, for principals without one.',
    ),
  CHANCERY_PROTECTION_KEY_FILE: secretFile
    .refine((secret) => secret.reveal().length === 32, 'the file must hold exactly 32 bytes')
    .describe('File of 32 random bytes that protect signing keys at rest and authenticate refresh tokens.'),
  ServiceAuth__DisableSharedSecrets: flag
    .default(false)
    .describe('Refuses client secrets on every listener; certificates are the only credential of services.'),
  CHANCERY_PUBLIC_ORG_ENABLED: flag
    .default(false)
    .describe('Opens the Public organisation when it is seeded.'),
  CHANCERY_LOCKOUT_STEPS: lockoutSteps
    .default(defaultLockoutSteps)
    .describe(
      'Lockout ladder as JSON, by account and network: [{"failures":5,"seconds":300}, ...], seconds may be "until-unlocked".',
    ),
  CHANCERY_PASSWORD_MIN_LENGTH: z.coerce
    .number()
    .int()
    .min(8)
    .max(64)
    .default(12)
    .describe(
      'Minimum length of passwords in characters; 15 is recommended where the password is the only factor.',
    ),
  CHANCERY_PASSWORD_BREACH_API: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'Service with the range interface of Pwned Passwords that is asked about new passwords; unreachable, it refuses none.',
    ),
  CHANCERY_PASSWORD_GRANT_ENABLED: flag
    .default(true)
    .describe('Serves the password grant at the public token endpoint.'),
  CHANCERY_SMTP_URL_FILE: secretFile
    .refine((secret) => isSmtpUrl(secret.text()), 'the file must hold smtp://… or smtps://…')
    .optional()
    .describe(
      'File with the address of the mail server, smtp://user:password@host:587; without it mails wait and health is Degraded.',
    ),
  CHANCERY_MAIL_FROM: z
    .string()
    .regex(/^[^\r\n]{1,200}$/)
    .default('Chancery <no-reply@localhost>')
    .describe('Sender of mails, with or without a name.'),
  CHANCERY_SMS_WEBHOOK_FILE: secretFile
    .refine((secret) => isWebhook(secret.text()), 'the file must hold JSON {"url", "secret"}')
    .optional()
    .describe(
      'File with the webhook that sends text messages, JSON {"url", "secret"}; without it routes of text messages answer 404.',
    ),
  CHANCERY_MESSAGES_DIR: z
    .string()
    .optional()
    .describe('Directory that mails and text messages are written to instead of being sent; local mode.'),
  CHANCERY_PASSKEY_RP_ID: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/)
    .refine((domain) => isIP(domain) === 0, 'expected a domain, not an IP address')
    .optional()
    .describe(
      'Domain that passkeys are made for; the host of the base URL when absent. It must never change.',
    ),
  CHANCERY_PASSKEY_RP_NAME: readableName
    .max(64)
    .optional()
    .describe('Name that authenticators show beside a passkey; that of the installation when absent.'),
  CHANCERY_PASSKEY_ORIGINS: z
    .string()
    .default('')
    .transform((text) => text.split(',').map((origin) => origin.trim()))
    .transform((origins) => origins.filter((origin) => origin !== ''))
    .refine((origins) => origins.every((origin) => URL.parse(origin)?.origin === origin), 'expected origins')
    .describe('Origins that may use passkeys, separated by commas; that of the base URL when empty.'),
  CHANCERY_SOCIAL_PROVIDERS_FILE: secretFile
    .refine(
      (secret) => parseSocialSettings(secret.text()) !== undefined,
      'the file must hold a JSON list of providers',
    )
    .optional()
    .describe(
      'File with the social providers, JSON [{"name": "google", "clientId", "clientSecret"}, …]; google, microsoft, github, apple.',
    ),
  CHANCERY_OUTBOUND_ALLOWED: outboundAllowed.describe(
    'Exact origins, separated by commas, that may be asked though they are private or without TLS; identity providers.',
  ),
  Trust__TrustListStrictFreshness: flag
    .default(false)
    .describe(
      'Refuses anchors of trust lists that should have been updated; they are marked as stale otherwise.',
    ),
  Auth__ReturnToAllowlist__Hosts: returnToHosts.describe(
    'Hosts that a sign-in may lead to, separated by commas: exact, or *.suffix; https, or http for localhost.',
  ),
  CHANCERY_SERVICE_TOKEN_LIFETIME_SECONDS: z.coerce
    .number()
    .int()
    .min(60)
    .max(28_800)
    .default(3600)
    .describe('Lifetime of service tokens.'),
  CHANCERY_SIGNING_KEY_ROTATION_DAYS: z.coerce
    .number()
    .int()
    .min(1)
    .max(365)
    .default(90)
    .describe('Days until the next signing key becomes the current one.'),
});

export type TenantConfig = z.output<typeof tenantSettings>;
