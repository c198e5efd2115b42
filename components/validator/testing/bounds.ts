const mebibyte = 1024 * 1024;

/** The default bounds of a validator's pools. */
export const testBounds = {
  maxTransactions: 10_000,
  maxControlTransactions: 1_000,
  maxBytes: 64 * mebibyte,
  maxBytesTotal: 256 * mebibyte,
};

/** Keys of a register are loaded with its first question. */
export const testKeyFilters = { mode: 'on', maxBytes: 256 * mebibyte, leastQuestions: 1 } as const;
