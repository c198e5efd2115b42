/** Whose failed sign-ins are counted: an account, or the addresses without an account that share a record. */
export interface Subject {
  readonly kind: 'account' | 'unknown';
  /** A UUID: that of the account, or one made of the record's number. */
  readonly id: string;
}

export function accountSubject(accountId: string): Subject {
  return { kind: 'account', id: accountId };
}
