import { AppError } from '../errors/errors.ts';

/** Names of algorithms in everything that is hashed. */
export const ALGORITHMS = ['ED25519', 'NISTP256', 'RSA-4096'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

const CODES: Readonly<Record<Algorithm, number>> = { ED25519: 0, NISTP256: 1, 'RSA-4096': 2 };

/** Whether a text is exactly the name of an algorithm. */
export function isAlgorithm(text: unknown): text is Algorithm {
  return ALGORITHMS.some((algorithm) => algorithm === text);
}

/**
 * Parses the name of an algorithm; no other spelling is accepted.
 * @throws AppError invalid VAL_SIG_001
 */
export function parseAlgorithm(text: string): Algorithm {
  if (isAlgorithm(text)) return text;
  throw new AppError('invalid', 'VAL_SIG_001', `Algorithm is not one of ${ALGORITHMS.join(', ')}`);
}

/** The five-bit code of an algorithm in a wallet address. */
export function algorithmCode(algorithm: Algorithm): number {
  return CODES[algorithm];
}

/** Finds the algorithm of an address code. */
export function findAlgorithmByCode(code: number): Algorithm | undefined {
  return ALGORITHMS.find((algorithm) => CODES[algorithm] === code);
}
