/** What a person can prove to be the owner of an account with. */
export interface Means {
  readonly hasPassword: boolean;
  /** Number of those that are active. */
  readonly passkeys: number;
  /** Names of the social providers that are connected, one for each connection. */
  readonly socialProviders: readonly string[];
  readonly hasTotp: boolean;
  /** Codes by mail; they need a verified address. */
  readonly hasEmailCodes: boolean;
  /** Codes by text message; they need a verified number. */
  readonly hasSmsCodes: boolean;
}

/** In the order in which they are offered, the strongest first. */
export const SECOND_FACTORS = ['passkey', 'totp', 'sms', 'email'] as const;
export type SecondFactor = (typeof SECOND_FACTORS)[number];

/** The second factors that a sign-in with a password must choose from; empty when it needs none. */
export function secondFactorsOf(means: Means): readonly SecondFactor[] {
  const has = {
    passkey: means.passkeys > 0,
    totp: means.hasTotp,
    sms: means.hasSmsCodes,
    email: means.hasEmailCodes,
  };
  return SECOND_FACTORS.filter((factor) => has[factor]);
}

/** Means that open a session by themselves; the last of them cannot be removed. */
export function countFirstFactors(means: Means): number {
  return (means.hasPassword ? 1 : 0) + means.passkeys + means.socialProviders.length;
}

/** Whether the account can prove more than knowledge of a password. */
export function ownsStrongFactor(means: Means): boolean {
  return means.hasTotp || means.passkeys > 0;
}
