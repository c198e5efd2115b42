/** The subject of failed sign-ins: an account, or the addresses without an account that share a record. */
export interface Subject {
  readonly kind: 'account' | 'unknown';
  /** The UUID of the account, or a UUID that encodes the number of the record. */
  readonly id: string;
}

export function accountSubject(accountId: string): Subject {
  return { kind: 'account', id: accountId };
}
