import type { Logger } from '#kit/log/log.ts';
import type { LookupAnswer, LookupQuery } from '../../chain/keys/lookup.ts';
import { hasExclusiveSuccessor } from '../../chain/pool/transaction.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { answerOfKeys, type Question } from './question.ts';

interface ShadowCheckOptions {
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly log: Logger;
  /** The keys called a transaction new that the register service had sealed or that repeats a sealed one. */
  disagreed(): void;
}

interface Suspect {
  readonly register: RegisterChain;
  readonly query: LookupQuery;
  readonly answer: LookupAnswer;
  /** Height from which the keys must know what the register service answered. */
  readonly height: number;
}

const maxSuspects = 10_000;

/**
 * Compares answers of the register service with those of a register's keys. The register service may have dockets that
 * this validator has not decided yet, so an answer that differs counts only once the validator has reached the height of
 * the register service.
 */
export class ShadowCheck {
  readonly #options: ShadowCheckOptions;
  #suspects: Suspect[] = [];

  constructor(options: ShadowCheckOptions) {
    this.#options = options;
  }

  compare(question: Question, answer: LookupAnswer): void {
    this.settle();
    const { register, query } = question;
    const ours = answerOfKeys(question);
    if (ours === undefined || agrees({ query, ours, theirs: answer }, question.typeHere())) return;
    void this.#suspect({ register, query, answer });
  }

  /** Judges the suspects whose registers have reached the height of the register service. */
  settle(): void {
    const ready = this.#suspects.filter(({ register, height }) => register.state.height >= height);
    if (ready.length === 0) return;
    this.#suspects = this.#suspects.filter(({ register, height }) => register.state.height < height);
    for (const suspect of ready) this.#judge(suspect);
  }

  async #suspect(suspect: Omit<Suspect, 'height'>): Promise<void> {
    const { ledger, log } = this.#options;
    try {
      const facts = await ledger.findRegister(suspect.register.id);
      if (this.#suspects.length < maxSuspects)
        this.#suspects.push({ ...suspect, height: facts?.height ?? 0 });
      this.settle();
    } catch (error) {
      log.warn({ err: error, registerId: suspect.register.id }, 'a different answer could not be compared');
    }
  }

  #judge({ register, query, answer }: Suspect): void {
    const { height } = register.state;
    const ours = register.keys.answer(height, query, answer.previousKnown ? answer.previousType : undefined);
    if (ours === undefined || agrees({ query, ours, theirs: answer }, undefined)) return;
    const { transactionId } = query;
    this.#options.log.error(
      { registerId: register.id, height, transactionId, query, answer, ours },
      'the keys of a register call a transaction new that is not',
    );
    this.#options.disagreed();
  }
}

interface Answers {
  readonly query: LookupQuery;
  readonly ours: LookupAnswer;
  readonly theirs: LookupAnswer;
}

/** Whether the register service has nothing against a transaction that the keys call new. */
function agrees({ query, ours, theirs }: Answers, typeHere: string | undefined): boolean {
  if (theirs.sealedRecordHash !== '') return false;
  if (ours.previousKnown && theirs.previousKnown && ours.previousType !== theirs.previousType) return false;
  const type = typeHere ?? (theirs.previousKnown ? theirs.previousType : ours.previousType);
  const isOnlySuccessor = query.previousTransactionId !== '' && hasExclusiveSuccessor(type);
  return isOnlySuccessor ? theirs.previousSuccessor === '' : theirs.sealedReplay === '';
}
