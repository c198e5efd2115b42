import type { LookupAnswer } from '../../chain/keys/lookup.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import type { KeyLoader } from './key-loader.ts';
import { answerOfKeys, type Question } from './question.ts';
import type { Reach } from './reach.ts';
import type { ShadowCheck } from './shadow-check.ts';

/** `shadow`: the register service is asked all the same, and answers that differ are counted. */
export const keyFilterModes = ['on', 'shadow', 'off'] as const;
export type KeyFilterMode = (typeof keyFilterModes)[number];

interface SealedLookupOptions {
  readonly ledger: Pick<Ledger, 'lookup'>;
  readonly mode: KeyFilterMode;
  readonly reach: Pick<Reach, 'isReachable'>;
  readonly loader: Pick<KeyLoader, 'used'>;
  readonly shadow: ShadowCheck;
}

/**
 * Answers what the sealed past says about a transaction: from the keys of its register where it is certainly new, otherwise
 * by the register service, in one request for many.
 */
export class SealedLookup {
  readonly #options: SealedLookupOptions;
  /** Questions answered so far, by who answered them. */
  readonly answered = { keys: 0, register: 0 };

  constructor(options: SealedLookupOptions) {
    this.#options = options;
  }

  /**
   * The answer of the register's keys, as of this moment; undefined when the register service must be asked. The caller
   * acts on it in the same synchronous step, because dockets are decided meanwhile.
   */
  certain(question: Question): LookupAnswer | undefined {
    const { mode, loader, reach } = this.#options;
    if (mode === 'off') return undefined;
    loader.used(question.register);
    // Nothing is accepted while the register service is away.
    if (mode === 'shadow' || !reach.isReachable) return undefined;
    const answer = answerOfKeys(question);
    if (answer !== undefined) this.answered.keys += 1;
    return answer;
  }

  /**
   * The answers of the register service, in the order of the questions; fewer when it answered only partly.
   * @throws AppError unavailable or timeout
   */
  async ask(questions: readonly Question[]): Promise<readonly LookupAnswer[]> {
    const { ledger, mode, shadow } = this.#options;
    const answers = await ledger.lookup(questions.map(({ query }) => query));
    this.answered.register += questions.length;
    if (mode === 'shadow') {
      for (const [index, question] of questions.entries()) {
        const answer = answers[index];
        if (answer !== undefined) shadow.compare(question, answer);
      }
    }
    return answers;
  }
}
