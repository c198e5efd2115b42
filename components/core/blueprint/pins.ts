/** The feature of validators that judge steps against the publications that they name, their pins. */
export const BLUEPRINT_PINS = 'bp-pin-v1';

/** What the rules of a validator of this release cover. */
export const VALIDATOR_FEATURES: readonly string[] = [BLUEPRINT_PINS];
