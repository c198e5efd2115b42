import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { refusal } from '../../errors.ts';
import { createTokens, type OneTimeTokens } from '../../tokens/one-time/one-time.ts';

/** Who passkeys are made for: the relying party of WebAuthn. */
export interface RelyingParty {
  /** A domain; absent when the installation has none, because an IP address is none. */
  readonly id: string | undefined;
  readonly name: string;
  readonly origins: readonly string[];
}

/** What a challenge was made for; an answer for another purpose, or of another person, is refused. */
const payload = z.object({
  /** 32 random bytes, base64url. */
  challenge: z.string(),
  purpose: z.enum(['enrol', 'sign-up', 'sign-in', 'second-step', 'proof']),
  /** Of sign-in: none, since the passkey tells who it is. Of sign-up: the account that is to be. */
  accountId: z.string().optional(),
  displayName: z.string().optional(),
  email: z.string().optional(),
  /** Of the second step: the hash of the login token that it was begun with, base64url. */
  loginHash: z.string().optional(),
});
export type Ceremony = z.output<typeof payload>;
export type Ceremonies = OneTimeTokens<Ceremony>;

const lifetimeMs = 300_000;

/** Challenges of WebAuthn: 300 s, one use; the token is the transaction id of the routes. */
export function createCeremonies(deps: Parameters<typeof createTokens>[0]): Ceremonies {
  return createTokens(deps, { purpose: 'passkey-ceremony', payload, lifetimeMs });
}

export function createChallenge(): string {
  return randomBytes(32).toString('base64url');
}

/** @throws PASSKEYS_UNAVAILABLE */
export function requireDomain(party: RelyingParty): string {
  if (party.id === undefined) throw refusal('PASSKEYS_UNAVAILABLE');
  return party.id;
}

/** The relying party of an installation: the host of its base URL unless the settings say otherwise. */
export function relyingPartyOf(settings: {
  readonly baseUrl: string;
  readonly rpId: string | undefined;
  /** Shown by authenticators; the name of the installation when absent. */
  readonly rpName: string | undefined;
  readonly origins: readonly string[];
  readonly installation: string;
}): RelyingParty {
  const { hostname, origin } = new URL(settings.baseUrl);
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith('[');
  return {
    id: settings.rpId ?? (isAddress ? undefined : hostname),
    name: settings.rpName ?? settings.installation,
    origins: settings.origins.length > 0 ? settings.origins : [origin],
  };
}
