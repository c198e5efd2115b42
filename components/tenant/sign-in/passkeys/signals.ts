import type { Account } from '../../people/accounts/account.ts';
import type { RelyingParty } from './ceremony.ts';
import type { Passkey } from './store.ts';

/**
 * The user handle: the 16 bytes of the account's id. It reveals nothing about the person (WebAuthn Level 3, 14.6.1).
 */
export function userHandleOf(accountId: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(accountId.replaceAll('-', ''), 'hex'));
}

/** The names that authenticators show for an account: the same when a passkey is made and when it is signalled. */
export function userNamesOf({ email, displayName }: Pick<Account, 'email' | 'displayName'>) {
  return { name: email ?? displayName, displayName };
}

/** What a page passes to the signal methods of WebAuthn Level 3, 5.1.10. */
export interface Signals {
  /** Undefined when the installation has no domain. */
  readonly rpId: string | undefined;
  /** The user handle, base64url. */
  readonly userId: string;
  readonly name: string;
  readonly displayName: string;
  /** Credential ids of the active passkeys, base64url; authenticators may hide the others. */
  readonly acceptedIds: readonly string[];
}

export function signalsOf(
  party: RelyingParty,
  account: Pick<Account, 'id' | 'email' | 'displayName'>,
  passkeys: readonly Passkey[],
): Signals {
  return {
    rpId: party.id,
    userId: Buffer.from(userHandleOf(account.id)).toString('base64url'),
    ...userNamesOf(account),
    acceptedIds: passkeys.filter(isUsable).map(({ credentialId }) => credentialId.toString('base64url')),
  };
}

export function isUsable({ status }: Pick<Passkey, 'status'>): boolean {
  return status === 'Active';
}
