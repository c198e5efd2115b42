const mebibyte = 1024 * 1024;

/** The bounds of a validator's pools, as they are by default. */
export const testBounds = {
  maxTransactions: 10_000,
  maxControlTransactions: 1_000,
  maxBytes: 64 * mebibyte,
  maxBytesTotal: 256 * mebibyte,
};
