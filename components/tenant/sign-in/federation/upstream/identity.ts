import { z } from 'zod';
import { isReadableLine } from '#core/encoding/readable.ts';

/** A person as a provider knows them. */
export interface UpstreamIdentity {
  /** Never reassigned by the provider. */
  readonly subject: string;
  /** Normalised. */
  readonly email: string | undefined;
  /** The provider says that the person owns the address. */
  readonly isEmailVerified: boolean;
  readonly displayName: string | undefined;
  /** When the provider saw the person prove who they are, where it tells. */
  readonly authTimeMs: number | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

/** A subject identifier (OpenID Connect Core 1.0, section 2: at most 255 characters). */
const subject = z.string().min(1).max(255).refine(isReadableLine);
const email = z.email().max(254);

/** @throws ZodError when the claims name no subject */
export function identityOf(claims: Claims): UpstreamIdentity {
  const address = addressOf(claims);
  return {
    subject: subject.parse(claims['sub']),
    email: address,
    isEmailVerified:
      address !== undefined && claims['email'] !== undefined && isTrue(claims['email_verified']),
    displayName: nameOf(claims),
    authTimeMs: typeof claims['auth_time'] === 'number' ? claims['auth_time'] * 1_000 : undefined,
  };
}

/** Apple writes booleans as texts. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 'true';
}

/** An address is text of a foreign party: what is none is dropped. */
export function toAddress(value: unknown): string | undefined {
  const parsed = email.safeParse(typeof value === 'string' ? value.trim().toLowerCase() : undefined);
  return parsed.success ? parsed.data : undefined;
}

function addressOf(claims: Claims): string | undefined {
  return toAddress(claims['email']) ?? toAddress(claims['preferred_username']) ?? toAddress(claims['upn']);
}

/** A name that may be shown: one readable line of at most 100 characters. */
export function toName(...parts: readonly unknown[]): string | undefined {
  const name = parts
    .filter((part) => typeof part === 'string')
    .join(' ')
    .trim();
  return name !== '' && name.length <= 100 && isReadableLine(name) ? name : undefined;
}

function nameOf(claims: Claims): string | undefined {
  return toName(claims['name']) ?? toName(claims['given_name'], claims['family_name']);
}
