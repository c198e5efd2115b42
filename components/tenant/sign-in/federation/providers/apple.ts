import { createPrivateKey } from 'node:crypto';
import { SignJWT } from 'jose';
import type { Clock } from '#kit/clock/clock.ts';
import type { AppleSettings } from './settings.ts';

const audience = 'https://appleid.apple.com';
const lifetimeSeconds = 300;

/** The client secret that Apple takes: a token signed by the key of the team, here for five minutes. */
export function createAppleSecret(settings: AppleSettings, clock: Clock): () => Promise<string> {
  const key = createPrivateKey(settings.privateKey);
  return () => {
    const now = Math.floor(clock.nowMs() / 1_000);
    return new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', kid: settings.keyId })
      .setIssuer(settings.teamId)
      .setSubject(settings.clientId)
      .setAudience(settings.issuer ?? audience)
      .setIssuedAt(now)
      .setExpirationTime(now + lifetimeSeconds)
      .sign(key);
  };
}
