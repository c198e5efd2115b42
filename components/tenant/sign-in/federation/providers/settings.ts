import { createPrivateKey } from 'node:crypto';
import { z } from 'zod';

/** Providers of accounts that people have anyway. */
export const SOCIAL_PROVIDERS = ['google', 'microsoft', 'github', 'apple'] as const;
export type SocialProviderName = (typeof SOCIAL_PROVIDERS)[number];

const address = z.url().max(2048);
const text = z.string().min(1).max(2048);

const common = {
  clientId: text,
  scopes: z.array(z.string().min(1).max(200)).min(1).max(20).optional(),
  supportsPkce: z.boolean().default(true),
  // Endpoints other than the published ones, for example of a cloud of its own.
  issuer: text.optional(),
  authorizationEndpoint: address.optional(),
  tokenEndpoint: address.optional(),
  userInfoEndpoint: address.optional(),
  jwksUri: address.optional(),
  emailsEndpoint: address.optional(),
};

const bySecret = z.strictObject({
  name: z.enum(['google', 'microsoft', 'github']),
  clientSecret: text,
  ...common,
});

/** Apple takes a token that the key of the team signs. */
const byKey = z.strictObject({
  name: z.literal('apple'),
  teamId: text,
  keyId: text,
  privateKey: text.refine(isSigningKey, 'expected a private key of P-256 in PEM'),
  ...common,
});

function isSigningKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.namedCurve === 'prime256v1';
  } catch {
    return false;
  }
}

const settings = z
  .array(z.discriminatedUnion('name', [bySecret, byKey]))
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'a provider stands there twice');

export type SocialSettings = z.output<typeof settings>[number];
export type AppleSettings = z.output<typeof byKey>;

/** Parses the file of the setting: a JSON list of providers. @returns undefined when it is malformed */
export function parseSocialSettings(json: string): readonly SocialSettings[] | undefined {
  try {
    return settings.parse(JSON.parse(json));
  } catch {
    return undefined;
  }
}
